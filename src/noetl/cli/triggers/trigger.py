"""`noetl trigger`: create, list, show, pause, resume and delete triggers.

Tested in tests/acceptance/triggers/test_trigger_cli.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import to_json
from noetl.cli.triggers.actions import PAGE, Paused, TriggerNoun, add_changes, add_list, add_show, maker

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.triggers.ended import TriggerRow

Many = list[str] | None


async def _page(client: Client, path: str | None, cursor: str | None) -> tuple[list[TriggerRow], str | None]:
    page = await client.triggers(path, cursor=cursor, limit=PAGE)
    return page.triggers, page.next


def _line(row: TriggerRow) -> str:
    if not row.after:
        return f"starts {row.path}"
    status = f"{' or '.join(row.status)} " if row.status else ""
    tags = f" with the tags {', '.join(row.tags)}" if row.tags else ""
    return f"starts {row.path} after {status}executions of {row.after}{tags}"


def _state(row: TriggerRow) -> str:
    return "broken" if row.problem else "paused" if row.paused else "active"


def _lines(row: TriggerRow) -> Iterator[str]:
    yield f"{row.trigger_id}: {_line(row)} ({_state(row)})"
    yield f"  made by {maker(row)}"
    if row.problem:
        yield f"  {row.problem}"
    if row.payload:
        yield f"  payload: {to_json(row.payload)}"


NOUN: TriggerNoun[TriggerRow] = TriggerNoun(
    "trigger",
    "Triggers are fired by a server",
    _page,
    find=lambda client, id: client.trigger(id),
    pause=lambda client, id: client.pause_trigger(id),
    resume=lambda client, id: client.resume_trigger(id),
    delete=lambda client, id: client.delete_trigger(id),
    line=lambda row: f"{row.trigger_id:<28} {_state(row):<8} {_line(row)}",
    changed=lambda row: f"{row.trigger_id}: {_line(row)}",
)
command = command_group(
    "Create, list, show, pause, resume and delete a server's triggers, which start a playbook when executions end."
)


@command.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the trigger, which is its ID.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Playbook to start, in the server's catalog.")],
    after: Annotated[
        str, typer.Option("--after", metavar="PATTERN", help="Paths of the executions that it watches: `etl/*`.")
    ],
    status: Annotated[
        Many,
        typer.Option(
            "--status",
            metavar="STATUS",
            help="End: completed, failed, cancelled or partial; repeatable. [default: any]",
            show_default=False,
        ),
    ] = None,
    tags: Annotated[Many, typer.Option("--tag", metavar="TAG", help="Tag of the executions; repeatable.")] = None,
    payload: Annotated[
        str | None,
        typer.Option("--payload", metavar="JSON", help="Workload, with templates over `execution`: JSON, or @FILE."),
    ] = None,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", help="Version of the playbook. [default: the latest]")
    ] = None,
    paused: Paused = False,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Create a trigger of a playbook."""

    async def job(client: Client) -> None:
        from noetl.cli.arguments.payload import read_payload

        given = {"status": status or [], "tags": tags or [], "payload": read_payload((), payload)}
        made = await client.create_trigger(name, path, after, **given, version=version, paused=paused)
        NOUN.print_changed(made, "created", json)

    NOUN.on_server(server, job)


add_list(command, NOUN, "List triggers: ID, state, and what starts after which ends.")
add_show(command, NOUN, "Show a trigger.", _lines)
add_changes(
    command,
    NOUN,
    pause="Pause a trigger: ends of executions start nothing.",
    resume="Resume a paused trigger.",
    delete="Delete a trigger.",
)
