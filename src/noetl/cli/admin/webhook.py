"""`noetl webhook`: create, list, show, pause, resume, delete and test webhooks.

Tested in tests/acceptance/admin/test_webhook_cli.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import to_json
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.webhooks import WebhookRow

_PAGE: Final = 500
Id = Annotated[str, typer.Argument(metavar="ID", help="Webhook ID, as `noetl webhook list` prints it.")]
Auth = Annotated[
    str, typer.Option("--auth", metavar="FORM", help="Proof of a delivery: secret, hmac, github or stripe.")
]
Credential = Annotated[
    str, typer.Option("--credential", metavar="NAME", help="Credential whose value is the shared secret. Required.")
]
Header = Annotated[str, typer.Option("--header", metavar="NAME", help="Header with the secret or the signature.")]
Prefix = Annotated[str, typer.Option("--prefix", metavar="TEXT", help="Text before the signature, with hmac.")]
Encoding = Annotated[str, typer.Option("--encoding", metavar="NAME", help="Encoding of the signature: hex or base64.")]
Stamp = Annotated[
    str, typer.Option("--timestamp-header", metavar="NAME", help="Header with the signed timestamp, with hmac.")
]
Tolerance = Annotated[str, typer.Option("--tolerance", metavar="TIME", help="Largest age of a timestamp.")]
Dedup = Annotated[
    str, typer.Option("--dedup", metavar="TEMPLATE", help="Key of a delivery, which starts one execution.")
]
Mapped = Annotated[
    str | None,
    typer.Option(
        "--payload", metavar="JSON|@FILE", help="Workload values with templates over headers, body and query."
    ),
]
Wait = Annotated[
    str, typer.Option("--wait-up-to", metavar="TIME", help="Wait for the end of the execution, at most 30s.")
]
Version = Annotated[
    int | None, typer.Option("--version", help="Version of the playbook. [default: the latest at each delivery]")
]

command = command_group(
    "Create, list, show, pause, resume, delete and test a server's webhooks, which start executions."
)


@command.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the webhook, which is its ID.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Playbook in the server's catalog.")],
    auth: Auth = "hmac",
    credential: Credential = "",
    header: Header = "",
    prefix: Prefix = "",
    encoding: Encoding = "hex",
    timestamp_header: Stamp = "",
    tolerance: Tolerance = "5m",
    dedup: Dedup = "",
    payload: Mapped = None,
    wait: Wait = "0",
    version: Version = None,
    paused: Annotated[bool, typer.Option("--paused", help="Create it paused.")] = False,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Create a webhook, and print the path that takes its deliveries."""

    async def job(client: Client) -> None:
        from noetl.cli.arguments.payload import read_payload

        if not credential:
            fix = "`noetl credential put NAME --type secret --data @FILE` stores the shared secret."
            raise InvalidInput(f"A webhook needs --credential. {fix}")
        made = await client.create_webhook(
            name,
            path,
            auth,
            credential,
            header=header,
            prefix=prefix,
            encoding=encoding,
            timestamp_header=timestamp_header,
            tolerance=tolerance,
            dedup=dedup,
            payload=read_payload((), payload),
            wait=wait,
            version=version,
            paused=paused,
        )
        _print_changed(made, "created", json)

    _on_server(server, job)


@command.command("list")
def list_webhooks(
    path: Annotated[str | None, typer.Option("--path", metavar="PATH", help="Only webhooks of this playbook.")] = None,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """List webhooks: ID, form of authentication, state and playbook."""

    async def job(client: Client) -> None:
        cursor, count = None, 0
        while True:
            page = await client.webhooks(path, cursor=cursor, limit=_PAGE)
            count += len(page.webhooks)
            for row in page.webhooks:
                echo(to_json(row) if json else f"{row.webhook_id:<28} {row.auth:<8} {_state(row):<8} {row.path}")
            cursor = page.next
            if cursor is None:
                break
        if not count and not json:
            echo("no webhooks", err=True)

    _on_server(server, job)


@command.command("show")
def show(id: Id, json: AsJson = False, server: Place = None) -> None:
    """Show a webhook, and why it refuses deliveries, if it does."""

    async def job(client: Client) -> None:
        row = await client.webhook(id)
        if json:
            echo(to_json(row))
            return
        echo(f"{row.webhook_id}: POST {row.url} starts {row.path} ({_state(row)})")
        made = f"triggers of {row.owner}" if row.owner else (row.created_by or "-")
        echo(f"  {row.auth} in the header {row.header}, credential {row.credential}, made by {made}")
        if row.dedup:
            echo(f"  dedup: {row.dedup}")
        if row.payload:
            echo(f"  payload: {to_json(row.payload)}")
        if row.problem:
            echo(f"  refuses deliveries: {row.problem}")

    _on_server(server, job)


@command.command("pause")
def pause(id: Id, json: AsJson = False, server: Place = None) -> None:
    """Pause a webhook: deliveries are refused until it is resumed."""
    _on_server(server, lambda client: _change(client.pause_webhook(id), "paused", json))


@command.command("resume")
def resume(id: Id, json: AsJson = False, server: Place = None) -> None:
    """Resume a paused webhook."""
    _on_server(server, lambda client: _change(client.resume_webhook(id), "resumed", json))


@command.command("delete")
def delete(id: Id, json: AsJson = False, server: Place = None) -> None:
    """Delete a webhook."""

    async def job(client: Client) -> None:
        await client.delete_webhook(id)
        if json:
            echo(to_json({"webhook_id": id, "deleted": True}))
        echo(f"deleted webhook {id}", err=True)

    _on_server(server, job)


@command.command("test")
def deliver(
    id: Id,
    body: Annotated[str, typer.Option("--body", metavar="FILE", help="File with the body; `-` reads stdin.")] = "",
    content_type: Annotated[
        str, typer.Option("--content-type", metavar="TYPE", help="Media type of the body.")
    ] = "application/json",
    headers: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME=VALUE", help="Header of the delivery; repeatable.")
    ] = None,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Sign and deliver a body, which starts an execution."""

    async def job(client: Client) -> None:
        from noetl.cli.arguments.files import load_file

        given = dict(_header(one) for one in headers or ())
        try:
            text = load_file(body).decode() if body else "{}"
        except UnicodeDecodeError:
            raise InvalidInput(f"{body} is not UTF-8. A delivery is JSON, a form or plain text in UTF-8.") from None
        found = await client.test_webhook(id, text, content_type=content_type, headers=given)
        again = " (started by an earlier delivery)" if found.repeated else ""
        echo(to_json(found) if json else f"{found.execution_id} {found.status}{again}")

    _on_server(server, job)


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InvalidInput(f"`--header {text}` is not of the form NAME=VALUE. Write `--header X-Event=push`.")
    return name.strip(), value


async def _change(made: Awaitable[WebhookRow], what: str, json: bool) -> None:
    _print_changed(await made, what, json)


def _print_changed(row: WebhookRow, what: str, json: bool) -> None:
    if json:
        echo(to_json(row))
    echo(f"{what} webhook {row.webhook_id}: POST {row.url} starts {row.path}", err=True)


def _state(row: WebhookRow) -> str:
    return "paused" if row.paused else "active"


def _on_server(place: str | None, job: Callable[[Client], Awaitable[Any]]) -> None:
    async def connected_job() -> None:
        from noetl.cli.runtime.target import connect, require_server

        hint = "Webhooks are received by a server: start one with `noetl up`."
        async with connect(require_server(place, hint)) as client:
            await job(client)

    call(connected_job)
