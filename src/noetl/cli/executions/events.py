"""`noetl events`: prints the log of an execution, whole or as it grows.

With `--json` one object per line: the event's envelope with every key, and its `step`. Tested in
tests/acceptance/test_run_commands.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.common.completers import Id
from noetl.cli.common.store import AsJson, Place, as_json, following, reading, the_id

if TYPE_CHECKING:
    from noetl.model.events import Event
    from noetl.ports import History

_MOST_SHOWN = 160


def command(
    id: Id,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay until the execution has ended.")] = False,
    type: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="NAME", help="Only these: step.done, step.*, StepDone. May be given often."),
    ] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Print the log of an execution."""

    async def job(opened: History) -> None:
        from noetl.engine.view import envelope, types

        wanted = types(type) if type else None
        async for event in following(opened, await the_id(opened, id), follow):
            if wanted is None or event.event_type in wanted:
                typer.echo(as_json(envelope(event)) if json else line(event))

    reading(store, job)


def line(event: Event) -> str:
    """Write an event on one line for people."""
    from noetl.cli.output.progress import clock
    from noetl.engine.view import step_of

    item = "" if event.iteration is None else f"[{event.iteration}]"
    place = f"{event.step_run_id or ''}{item}".removesuffix("#1")
    what = event.entity_id if event.entity_id not in (event.execution_id, step_of(event)) else ""
    payload = as_json(event.payload) if event.payload else ""
    shown = payload if len(payload) <= _MOST_SHOWN else payload[:_MOST_SHOWN] + "…"
    return " ".join(
        part for part in (f"{event.seq:>5} {clock(event.timestamp)} {event.event_type:<26}", place, what, shown) if part
    )
