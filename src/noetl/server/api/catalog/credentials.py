"""Credentials: stored and listed here, decrypted only for a leased task.

These routes never return the data of a credential. Tested in tests/server/auth/test_vault.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.server.auth import credential_types
from noetl.server.auth.vault import NEW_KEY, Vault
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal, not_found
from noetl.wire.answers import CredentialRow, CredentialRows, Removed
from noetl.wire.requests import CredentialPut

noun = Noun("credentials", "Secrets that tasks refer to in `auth`.")


def vault_of(call: Call) -> Vault:
    """Return the vault of this server. Raises Refusal without a key."""
    vault = call.services.vault
    if vault is None:
        raise Refusal(
            503,
            "no-key",
            "This server has no key to encrypt credentials.",
            fix=NEW_KEY,
        )
    return vault


@noun.route(
    "PUT",
    "/api/credentials/{name}",
    "editor",
    act="credential.put",
    example={"kind": "postgres", "data": {"dsn": "postgresql://user:secret@db/app"}},
    problems=(422, 503),
)
async def put(call: Call, name: str, body: CredentialPut) -> CredentialRow:
    """Store a credential; one with the same name is replaced.

    The fields of `data` are those of its `kind`: postgres, bearer, basic, api_key, http, oauth2 or secret. With `generic`, the
    default, they are not checked.
    """
    wrong = credential_types.problems(body.kind, body.data)
    if wrong:
        detail = " ".join(one.message for one in wrong)
        raise Refusal(422, "invalid", detail, where=wrong[0].where, fix=wrong[0].fix)
    team, now = call.services.team, call.services.clock.now()
    sealed = vault_of(call).seal(name, body.data)
    version = await team.put_credential(name, body.kind, sealed, body.about, now, call.act(name, kind=body.kind))
    return CredentialRow(name=name, kind=body.kind, version=version, about=body.about, updated_at=now)


@noun.route("GET", "/api/credentials", "editor")
async def listed(call: Call) -> CredentialRows:
    """List credentials without their data."""
    return CredentialRows(credentials=[_row(row) for row in await call.services.team.credentials()])


@noun.route("DELETE", "/api/credentials/{name}", "editor", act="credential.delete", problems=(404,))
async def remove(call: Call, name: str) -> Removed:
    """Delete a credential."""
    if not await call.services.team.delete_credential(name, call.act(name)):
        raise not_found(f"No credential `{name}`.", "GET /api/credentials lists the credentials.")
    return Removed(removed=1)


def _row(row: Mapping[str, Any]) -> CredentialRow:
    return CredentialRow(**{name: row[name] for name in CredentialRow.__struct_fields__ if name in row})
