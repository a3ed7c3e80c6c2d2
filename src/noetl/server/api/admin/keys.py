"""Keys that seal credentials: list, and wrap again with another master key.

Tested in tests/server/auth/test_vault.py.
"""

from __future__ import annotations

from noetl.server.api.catalog.credentials import vault_of
from noetl.server.auth.stored_credential import data_key_rows
from noetl.server.http.endpoint import Call, Noun
from noetl.wire.answers import DataKeyRows, KeysRotated

noun = Noun("keys", "Keys that seal credentials. No route returns a key.")


@noun.route("GET", "/api/keys", "admin", problems=(503,))
async def listed(call: Call) -> DataKeyRows:
    """List the data keys with the master key that wraps each."""
    return await data_key_rows(call.services.team, vault_of(call))


@noun.route("POST", "/api/keys/rotate", "admin", act="key.rotate", problems=(422, 503))
async def rotate(call: Call) -> KeysRotated:
    """Wrap every data key with the first master key of this server.

    A server whose key is a file beside its store makes a new key.
    """
    vault = vault_of(call)
    count = await vault.rotate(call.services.team, call.act)
    return KeysRotated(rotated=count, master=vault.master)
