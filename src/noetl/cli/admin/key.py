"""`noetl key`: list the keys that seal credentials, and rotate the master key.

Tested in tests/acceptance/admin/test_credential_cli.py and tests/server/auth/test_vault.py.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from noetl.cli.admin.credential import on_place
from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import format_time, to_json
from noetl.cli.runtime.terminal import echo

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wiring.local_credentials import LocalCredentials

command = command_group("List the keys that seal credentials, and rotate the master key. No key is printed.")


@command.command("list")
def list_keys(json: AsJson = False, server: Place = None) -> None:
    """List the data keys, and the master key that wraps each."""

    async def job(client: Client | LocalCredentials) -> None:
        found = await client.data_keys()
        if json:
            echo(to_json(found))
            return
        echo(f"master key {found.master}")
        for row in found.keys:
            mark = "" if row.is_current else f", wrapped by {row.master}: run `noetl key rotate`"
            echo(f"data key {row.key_id}, created {format_time(row.created_at)}{mark}")

    on_place(server, job)


@command.command("rotate")
def rotate(json: AsJson = False, server: Place = None) -> None:
    """Wrap the data keys with the first master key, or with a new one.

    Servers and workers go on. A SQLite store with a key file gets a new key, also with --server; the file keeps the old one
    while another store of the folder needs it. Elsewhere, first start every server with NOETL_ENCRYPTION_KEY="NEW,OLD";
    after the rotation the old key can go.
    """

    async def job(client: Client | LocalCredentials) -> None:
        done = await client.rotate_keys()
        keys = "1 data key is" if done.rotated == 1 else f"{done.rotated} data keys are"
        echo(to_json(done) if json else f"{keys} now wrapped by the master key {done.master}")
        for store in getattr(client, "kept_for", ()):  # a server logs them
            fix = f"Run `noetl key rotate --store {quote(store)}` to remove it."
            echo(f"the key file keeps an older key, which {store} may need. {fix}", err=True)

    on_place(server, job)
