"""`noetl notification`: create, list, show, delete and test notifications.

Tested in tests/acceptance/admin/test_notification_cli.py.
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

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.notifications import NotificationRow

_PAGE: Final = 500
Id = Annotated[str, typer.Argument(metavar="ID", help="Notification ID, as `noetl notification list` prints it.")]
On = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="EVENT",
        help="Event: failed, timeout, dead_letter, approval or sla; repeatable. [default: failed]",
        show_default=False,
    ),
]
Channel = Annotated[str, typer.Option("--channel", metavar="NAME", help="Channel: webhook, slack or email.")]
Credential = Annotated[
    str,
    typer.Option("--credential", metavar="NAME", help="Credential with the URL, the token or the mail server."),
]
Url = Annotated[str, typer.Option("--url", metavar="URL", help="URL of a webhook, if it holds no secret.")]
To = Annotated[list[str] | None, typer.Option("--to", metavar="ADDRESS", help="Receiver of e-mails; repeatable.")]
Sla = Annotated[
    str, typer.Option("--sla", metavar="TIME", help="Duration after which an execution has missed its SLA.")
]

command = command_group(
    "Create, list, show, delete and test a server's notifications, which report executions that need a person."
)


@command.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the notification, which is its ID.")],
    path: Annotated[str, typer.Argument(metavar="PATTERN", help="Paths of playbooks, with `*`: `team-a/*`.")],
    on: On = None,
    channel: Channel = "webhook",
    credential: Credential = "",
    url: Url = "",
    to: To = None,
    sla: Sla = "0",
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Create a notification for a playbook or a namespace."""

    async def job(client: Client) -> None:
        events = on or (["sla"] if sla != "0" else ["failed"])
        row = await client.create_notification(
            name, path, events, channel, credential=credential, url=url, to=to or [], sla=sla
        )
        if json:
            echo(to_json(row))
        echo(f"created notification {row.notification_id}: {_line(row)}", err=True)

    _on_server(server, job)


@command.command("list")
def list_notifications(json: AsJson = False, server: Place = None) -> None:
    """List notifications: ID, channel, events and pattern of paths."""

    async def job(client: Client) -> None:
        cursor, count = None, 0
        while True:
            page = await client.notifications(cursor=cursor, limit=_PAGE)
            count += len(page.notifications)
            for row in page.notifications:
                echo(to_json(row) if json else f"{row.notification_id:<28} {row.channel:<8} {_line(row)}")
            cursor = page.next
            if cursor is None:
                break
        if not count and not json:
            echo("no notifications", err=True)

    _on_server(server, job)


@command.command("show")
def show(id: Id, json: AsJson = False, server: Place = None) -> None:
    """Show a notification, and why it cannot be sent, if it cannot."""

    async def job(client: Client) -> None:
        row = await client.notification(id)
        if json:
            echo(to_json(row))
            return
        echo(f"{row.notification_id}: {_line(row)}")
        where = row.url or ", ".join(row.to) or "the URL of the credential"
        with_ = f", credential {row.credential}" if row.credential else ""
        echo(f"  {row.channel} to {where}{with_}, made by {row.created_by or '-'}")
        if row.problem:
            echo(f"  cannot be sent: {row.problem}")

    _on_server(server, job)


@command.command("delete")
def delete(id: Id, json: AsJson = False, server: Place = None) -> None:
    """Delete a notification."""

    async def job(client: Client) -> None:
        await client.delete_notification(id)
        if json:
            echo(to_json({"notification_id": id, "deleted": True}))
        echo(f"deleted notification {id}", err=True)

    _on_server(server, job)


@command.command("test")
def send(id: Id, json: AsJson = False, server: Place = None) -> None:
    """Send a test message, and print its number in the outbox."""

    async def job(client: Client) -> None:
        found = await client.test_notification(id)
        echo(to_json(found) if json else str(found.number))
        echo(f"sending message {found.number}: `noetl outbox show {found.number}` says what became of it", err=True)

    _on_server(server, job)


def _line(row: NotificationRow) -> str:
    late = f" (after {row.sla})" if "sla" in row.on else ""
    return f"{', '.join(row.on)}{late} of {row.path}"


def _on_server(place: str | None, job: Callable[[Client], Awaitable[Any]]) -> None:
    async def connected_job() -> None:
        from noetl.cli.runtime.target import connect, require_server

        hint = "Notifications are sent by a server: start one with `noetl up`."
        async with connect(require_server(place, hint)) as client:
            await job(client)

    call(connected_job)
