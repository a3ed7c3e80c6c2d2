"""`noetl credential`: store, list and delete credentials; create their key.

Values are never printed. Read them from a file or stdin to keep them out of the shell's history. Tested in tests/client/test_api.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place, warn_of_secret
from noetl.cli.output.format import to_json
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl import Client

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name that `auth` in a playbook refers to.")]

command = command_group("Store, list and delete a server's credentials, and create its key. Values are never printed.")


@command.command("put")
def put(
    name: Name,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="JSON|@FILE|-", help="Value as a JSON object; `-` reads stdin. Required."),
    ] = None,
    kind: Annotated[
        str, typer.Option("--kind", help="Type: postgres, bearer, basic, api_key, http, oauth2, secret or generic.")
    ] = "generic",
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Create or replace a credential."""

    async def job(client: Client) -> None:
        row = await client.put_credential(name, _read_data(data), kind)
        echo(to_json(row) if json else f"{row.name} version {row.version}")

    _on_server(server, job)


@command.command("list")
def list_credentials(json: AsJson = False, server: Place = None) -> None:
    """List credentials: name, kind and version."""

    async def job(client: Client) -> None:
        for row in await client.credentials():
            echo(to_json(row) if json else f"{row.name:<24} {row.kind:<12} version {row.version}")

    _on_server(server, job)


@command.command("delete")
def delete(name: Name, json: AsJson = False, server: Place = None) -> None:
    """Delete a credential."""

    async def job(client: Client) -> None:
        await client.delete_credential(name)
        if json:
            echo(to_json({"name": name, "deleted": True}))
        echo(f"deleted credential {name}", err=True)

    _on_server(server, job)


@command.command("key")
def key(json: AsJson = False) -> None:
    """Print a new random key for NOETL_ENCRYPTION_KEY."""
    from noetl.server.auth.vault import new_key

    echo(to_json({"key": new_key()}) if json else new_key())


def _on_server(place: str | None, job: Callable[[Client], Awaitable[None]]) -> None:
    async def connected_job() -> None:
        from noetl.cli.runtime.target import connect, require_server

        hint = "Local runs read credentials from the environment: NOETL_CREDENTIAL_<NAME>."
        async with connect(require_server(place, hint)) as client:
            await job(client)

    call(connected_job)


def _read_data(given: str | None) -> dict[str, Any]:
    import json
    import sys
    from pathlib import Path

    if given is None:
        raise InvalidInput("No value given. Use --data @FILE, or --data - to read stdin.")
    if given != "-" and not given.startswith("@"):
        warn_of_secret("the value in --data", "Use --data @FILE, or --data - to read stdin.")
    try:
        text = sys.stdin.read() if given == "-" else Path(given[1:]).read_text() if given.startswith("@") else given
        data = json.loads(text)
    except OSError as error:
        raise InvalidInput(f"Cannot read {given[1:]}: {error.strerror}.") from None
    except ValueError as error:
        raise InvalidInput(f"The value is not JSON: {error}. Quote it for the shell, or use --data @FILE.") from None
    if not isinstance(data, dict):
        raise InvalidInput('The value must be a JSON object, such as {"token": "…"}.')
    return data
