"""`noetl subscription`: create, list, show, pause, resume, delete and test them.

Tested in tests/acceptance/triggers/test_subscription_cli.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import format_time, shorten, to_json
from noetl.cli.runtime.terminal import echo
from noetl.cli.triggers.actions import PAGE, Paused, TriggerNoun, add_changes, add_list, add_show, maker
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.triggers.subscriptions import SubscriptionRow

_MOST_ERROR: Final = 60
Kind = Annotated[str, typer.Option("--source", metavar="KIND", help="Source: listen, table, folder or http. Required.")]
Auth = Annotated[str, typer.Option("--auth", metavar="NAME", help="Credential, with listen, table and http.")]
Channel = Annotated[
    str, typer.Option("--channel", metavar="NAME", help="Channel of listen; with table, one that wakes the poll.")
]
Table = Annotated[str, typer.Option("--table", metavar="NAME", help="Table, with table.")]
Key = Annotated[str, typer.Option("--key", metavar="COLUMN", help="Column whose values are unique and grow.")]
Begin = Annotated[str, typer.Option("--begin", metavar="WHERE", help="Rows that come first, with table: now or first.")]
Folder = Annotated[str, typer.Option("--folder", metavar="PATH", help="Folder of the server, with folder.")]
Pattern = Annotated[str, typer.Option("--pattern", metavar="GLOB", help="Pattern of file names, with folder.")]
After = Annotated[
    str, typer.Option("--after", metavar="WHAT", help="What becomes of a file, with folder: keep or delete.")
]
Format = Annotated[
    str, typer.Option("--format", metavar="NAME", help="Content of a notification or file: json, text or none.")
]
Url = Annotated[str, typer.Option("--url", metavar="URL", help="URL, with http.")]
Params = Annotated[
    str | None,
    typer.Option("--params", metavar="JSON|@FILE", help="Parameters of the query, with templates over cursor."),
]
Items = Annotated[str, typer.Option("--items", metavar="TEMPLATE", help="List of items in the body, with http.")]
ItemId = Annotated[str, typer.Option("--id", metavar="TEMPLATE", help="What identifies an item, with http.")]
Cursor = Annotated[str, typer.Option("--cursor", metavar="TEMPLATE", help="Position for the next request, with http.")]
Every = Annotated[str, typer.Option("--every", metavar="TIME", help="Interval of polls.")]
Mapped = Annotated[
    str | None,
    typer.Option("--payload", metavar="JSON|@FILE", help="Workload values with templates over message."),
]
Version = Annotated[
    int | None, typer.Option("--version", help="Version of the playbook. [default: the latest at each message]")
]


async def _page(client: Client, path: str | None, cursor: str | None) -> tuple[list[SubscriptionRow], str | None]:
    page = await client.subscriptions(path, cursor=cursor, limit=PAGE)
    return page.subscriptions, page.next


def _state(row: SubscriptionRow) -> str:
    if not row.reads:
        return "broken"
    return "paused" if row.paused else "failing" if row.error else "active"


def _lines(row: SubscriptionRow) -> Iterator[str]:
    if not row.reads:
        yield f"{row.subscription_id}: starts {row.path} (broken)"
        yield f"  made by {maker(row)}. {row.error}"
        return
    yield f"{row.subscription_id}: {row.reads} starts {row.path} ({_state(row)})"
    yield f"  {row.received} messages taken in, {row.poisoned} dead letters, lag {row.lag}, made by {maker(row)}"
    if row.position:
        yield f"  position: {to_json(row.position)}"
    if row.last_message:
        yield f"  last message: {row.last_message} at {format_time(row.last_at)}"
    if row.polled_at is not None:
        yield f"  last poll: {format_time(row.polled_at)}"
    if row.error:
        later = "" if row.next_at is None else f", tried again at {format_time(row.next_at)}"
        yield f"  cannot be read ({row.failures} times{later}): {row.error}"


NOUN: TriggerNoun[SubscriptionRow] = TriggerNoun(
    "subscription",
    "Subscriptions are polled by a server",
    _page,
    find=lambda client, id: client.subscription(id),
    pause=lambda client, id: client.pause_subscription(id),
    resume=lambda client, id: client.resume_subscription(id),
    delete=lambda client, id: client.delete_subscription(id),
    line=lambda row: (
        f"{row.subscription_id:<28} {row.source:<7} {_state(row):<8} {row.received:>8} {row.lag:>6} {row.path}"
    ),
    changed=lambda row: f"{row.subscription_id}: {row.reads} starts {row.path}",
)
Id = Annotated[str, NOUN.id]
command = command_group(
    "Create, list, show, pause, resume, delete and test a server's subscriptions, which start executions."
)


@command.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the subscription, which is its ID.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Playbook in the server's catalog.")],
    source: Kind = "",
    auth: Auth = "",
    channel: Channel = "",
    table: Table = "",
    key: Key = "",
    begin: Begin = "now",
    folder: Folder = "",
    pattern: Pattern = "*",
    after: After = "keep",
    form: Format = "json",
    url: Url = "",
    params: Params = None,
    items: Items = "{{ body }}",
    item_id: ItemId = "",
    cursor: Cursor = "",
    every: Every = "10s",
    payload: Mapped = None,
    version: Version = None,
    paused: Paused = False,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Create a subscription of a playbook to a source."""

    async def job(client: Client) -> None:
        from noetl.cli.arguments.payload import read_payload

        if not source:
            raise InvalidInput("A subscription needs --source: listen, table, folder or http.")
        made = await client.create_subscription(
            name, path, source, auth=auth, channel=channel, table=table, key=key, begin=begin, folder=folder,
            pattern=pattern, after=after, format=form, url=url, params=read_payload((), params), items=items, id=item_id,
            cursor=cursor, every=every, payload=read_payload((), payload), version=version, paused=paused,
        )  # fmt: skip
        NOUN.print_changed(made, "created", json)

    NOUN.on_server(server, job)


add_list(command, NOUN, "List subscriptions: ID, source, state, messages, lag and playbook.")
add_show(command, NOUN, "Show a subscription: position, lag, last message and last error.", _lines)
add_changes(
    command,
    NOUN,
    pause="Pause a subscription: it is not polled until it is resumed.",
    resume="Resume a paused subscription where it was.",
    delete="Delete a subscription and its position.",
)


@command.command("test")
def poll(id: Id, json: AsJson = False, server: Place = None) -> None:
    """Poll the source once and print the next messages; nothing starts."""

    async def job(client: Client) -> int:
        found = await client.test_subscription(id)
        if json:
            echo(to_json(found))
        else:
            for one in found.messages:
                problem = f"would be a dead letter: {shorten(one.problem, _MOST_ERROR)}"
                echo(f"{one.message_id} {problem if one.problem else to_json(one.payload)}")
            count = len(found.messages) + found.lag
            waiting = f"{count} message{'' if count == 1 else 's'} waiting"
            echo(
                f"the source answers, {waiting}" if found.ok else f"the source cannot be read: {found.error}", err=True
            )
        return 0 if found.ok else 1

    raise typer.Exit(NOUN.on_server(server, job) or 0)
