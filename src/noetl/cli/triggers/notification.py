"""`noetl notification`: create, list, show, pause, delete and test notifications.

Tested in tests/acceptance/triggers/test_notification_cli.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import to_json
from noetl.cli.runtime.terminal import echo
from noetl.cli.triggers.actions import PAGE, Paused, TriggerNoun, add_changes, add_list, add_show, maker

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.triggers.notifications import NotificationRow

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


async def _page(client: Client, path: str | None, cursor: str | None) -> tuple[list[NotificationRow], str | None]:
    page = await client.notifications(path, cursor=cursor, limit=PAGE)
    return page.notifications, page.next


def _line(row: NotificationRow) -> str:
    late = f" (after {row.sla})" if "sla" in row.on else ""
    if not row.on:
        return f"broken, of {row.path}"
    return f"{', '.join(row.on)}{late} of {row.path}{' (paused)' if row.paused else ''}"


def _lines(row: NotificationRow) -> Iterator[str]:
    yield f"{row.notification_id}: {_line(row)}"
    if not row.on:
        yield f"  made by {maker(row, 'notifications')}. {row.problem}"
        return
    where = row.url or ", ".join(row.to) or "the URL of the credential"
    with_ = f", credential {row.credential}" if row.credential else ""
    yield f"  {row.channel} to {where}{with_}, made by {maker(row, 'notifications')}"
    if row.problem:
        yield f"  cannot be sent: {row.problem}"


NOUN: TriggerNoun[NotificationRow] = TriggerNoun(
    "notification",
    "Notifications are sent by a server",
    _page,
    find=lambda client, id: client.notification(id),
    pause=lambda client, id: client.pause_notification(id),
    resume=lambda client, id: client.resume_notification(id),
    delete=lambda client, id: client.delete_notification(id),
    line=lambda row: f"{row.notification_id:<28} {row.channel:<8} {_line(row)}",
    changed=lambda row: f"{row.notification_id}: {_line(row)}",
)
Id = Annotated[str, NOUN.id]
command = command_group(
    "Create, list, show, pause, resume, delete and test a server's notifications, which report executions that need a person."
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
    paused: Paused = False,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Create a notification for a playbook or a namespace."""

    async def job(client: Client) -> None:
        events = on or (["sla"] if sla != "0" else ["failed"])
        row = await client.create_notification(
            name, path, events, channel, credential=credential, url=url, to=to or [], sla=sla, paused=paused
        )
        NOUN.print_changed(row, "created", json)

    NOUN.on_server(server, job)


add_list(command, NOUN, "List notifications: ID, channel, events and pattern of paths.", by_path=False)
add_show(command, NOUN, "Show a notification, and why it cannot be sent, if it cannot.", _lines)
add_changes(
    command,
    NOUN,
    pause="Pause a notification: nothing is sent until it is resumed.",
    resume="Resume a paused notification.",
    delete="Delete a notification.",
)


@command.command("test")
def send(id: Id, json: AsJson = False, server: Place = None) -> None:
    """Send a test message, and print its number in the outbox."""

    async def job(client: Client) -> None:
        found = await client.test_notification(id)
        echo(to_json(found) if json else str(found.number))
        echo(f"sending message {found.number}: `noetl outbox show {found.number}` says what became of it", err=True)

    NOUN.on_server(server, job)
