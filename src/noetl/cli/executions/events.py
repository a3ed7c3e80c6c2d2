"""`noetl events`: print the event log of an execution, whole or as it grows.

With `--json`, one object per line. Tested in tests/acceptance/executions/test_run_commands.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.output.format import format_time, shorten, to_json, to_plain_json
from noetl.cli.runtime.environment import reader_mask
from noetl.cli.runtime.store import read_events, read_history, resolve_id
from noetl.cli.runtime.terminal import echo

if TYPE_CHECKING:
    from noetl.model.events import Event
    from noetl.ports import History

_MAX_PAYLOAD = 160


def command(
    id: ExecutionId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until the execution ends.")] = False,
    type: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="NAME", help="Only this type: step.done, step.*, StepDone; repeatable."),
    ] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Print the event log of an execution."""

    async def job(history: History) -> None:
        from noetl.engine.queries.view import envelope, types

        wanted = types(type) if type else None
        async for event in read_events(history, await resolve_id(history, id), follow):
            if wanted is None or event.event_type in wanted:
                echo(to_json(envelope(event)) if json else _event_line(event))

    read_history(store, job)


def _event_line(event: Event) -> str:
    from noetl.engine.queries.view import step_of

    item = "" if event.iteration is None else f"[{event.iteration}]"
    place = f"{event.step_run_id or ''}{item}".removesuffix("#1")
    entity = event.entity_id if event.entity_id not in (event.execution_id, step_of(event)) else ""
    payload = shorten(to_plain_json(reader_mask().event(event).payload), _MAX_PAYLOAD) if event.payload else ""
    head = f"{event.seq:>5} {format_time(event.timestamp)} {event.event_type:<26}"
    return " ".join(part for part in (head, place, entity, payload) if part)
