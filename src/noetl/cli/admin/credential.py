"""`noetl credential`: store, list, show, test and delete credentials; create keys.

Values are never printed. Read them from a file or stdin to keep them out of the shell's history. Tested in
tests/acceptance/admin/test_credential_cli.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place, warn_of_secret
from noetl.cli.output.format import format_time, to_json, to_plain_json
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.answers import CredentialDetail
    from noetl.wiring.local_credentials import LocalCredentials

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name that `auth` in a playbook refers to.")]

command = command_group(
    "Store, list, show, test and delete credentials of the local store or of a server. Values are never printed."
)


@command.command("put")
def put(
    name: Name,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="JSON|@FILE|-", help="Value as a JSON object; `-` reads stdin. Required."),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            "--type",
            help="Type: postgres, mysql, sqlite, snowflake, oauth2, bearer, basic, api_key, http, service_account, s3, gcs, "
            "azure, nats, secret or generic.",
        ),
    ] = "generic",
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Create or replace a credential."""

    from noetl.server.auth.credential_types import name_problem

    async def job(client: Client | LocalCredentials) -> None:
        misnamed = name_problem(name)  # it would be another route of a server
        if misnamed:
            raise InvalidInput(f"{misnamed.message} {misnamed.fix}")
        row = await client.put_credential(name, _read_data(data), kind)
        echo(to_json(row) if json else f"{row.name} version {row.version}")

    on_place(server, job, creates=True)


@command.command("list")
def list_credentials(json: AsJson = False, server: Place = None) -> None:
    """List credentials: name, kind and version."""

    async def job(client: Client | LocalCredentials) -> None:
        for row in await client.credentials():
            echo(to_json(row) if json else f"{row.name:<24} {row.kind:<12} version {row.version}")

    on_place(server, job)


@command.command("show")
def show(name: Name, json: AsJson = False, server: Place = None) -> None:
    """Show the type, the field names and the use of a credential.

    The use: registered playbooks whose latest version names it, and the execution that read it last.
    """

    async def job(client: Client | LocalCredentials) -> None:
        row = await client.credential(name)
        if json:
            echo(to_json(row))
        else:
            _print_detail(row)

    on_place(server, job)


@command.command("test")
def try_credential(
    name: Name,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="For bearer, basic, api_key and http: URL to request with it. For gcs, azure, s3 and snowflake: address of the service, if it is another one.",
        ),
    ] = None,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Connect with a credential and print what answered.

    Databases and token servers are signed in to; s3, gcs and azure list the bucket, the buckets or the containers; snowflake
    with a key pair answers a statement. Nothing is changed there.
    The connection is made where the credential is stored: by the server, or by this command. Exit code 1 means that the
    connection failed; a type that has nothing to connect to exits with 0 and says so.
    """

    async def job(client: Client | LocalCredentials) -> None:
        found = await client.test_credential(name, url)
        if json:
            echo(to_json(found))
        else:
            word = "not tested" if found.ok is None else "ok" if found.ok else "failed"
            place = f" {found.reached}:" if found.reached else ""
            echo(f"{word}:{place} {found.message}", err=found.ok is not True)
        if found.ok is False:
            raise typer.Exit(1)

    on_place(server, job)


@command.command("delete")
def delete(name: Name, json: AsJson = False, server: Place = None) -> None:
    """Delete a credential."""

    async def job(client: Client | LocalCredentials) -> None:
        await client.delete_credential(name)
        if json:
            echo(to_json({"name": name, "deleted": True}))
        echo(f"deleted credential {name}", err=True)

    on_place(server, job)


@command.command("key")
def key(json: AsJson = False) -> None:
    """Print a new random key for NOETL_ENCRYPTION_KEY."""
    from noetl.server.auth.vault import new_key

    echo(to_plain_json({"key": new_key()}) if json else new_key())


def _print_detail(row: CredentialDetail) -> None:
    def row_of(label: str, text: str) -> None:
        echo(f"{label:<12} {text}")

    row_of("name", row.name)
    row_of("kind", row.kind)
    row_of("version", f"{row.version}, stored {format_time(row.updated_at)}")
    row_of("fields", "unreadable: sealed with another key" if row.fields is None else ", ".join(row.fields) or "none")
    row_of("playbooks", ", ".join(row.playbooks) or "none of the catalog")
    used = "not recorded" if row.used_at is None else f"{format_time(row.used_at)} by execution {row.used_by}"
    row_of("last used", used)


def on_place(
    place: str | None, job: Callable[[Client | LocalCredentials], Awaitable[None]], *, creates: bool = False
) -> None:
    """Run a job with the credentials of a server or of a local store.

    A local store that does not exist is refused, unless the job `creates` it.
    """

    async def connected_job() -> None:
        from noetl.cli.runtime.target import connect, server_of

        server = server_of(place)
        if server is not None:
            async with connect(server) as client:
                await job(client)
            return
        from noetl.cli.runtime.environment import actor
        from noetl.cli.runtime.store import existing, local_settings
        from noetl.wiring.local_credentials import local_credentials

        settings = local_settings(place) if creates else existing(local_settings(place))
        async with local_credentials(settings, actor()) as local:
            await job(local)

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
