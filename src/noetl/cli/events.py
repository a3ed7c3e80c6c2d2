"""`noetl events`: prints the log of an execution, whole or as it grows.

With `--json` one object per line: the event's envelope with every key, and its `step`. Tested in
tests/acceptance/test_run_commands.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.store import AsJson, Id, StorePath, as_json, reading, the_id

if TYPE_CHECKING:
    from noetl.model.events import Event
    from noetl.wiring import Store

_LOOK_S = 0.1
_MOST_SHOWN = 160


def command(
    id: Id,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay until the execution has ended.")] = False,
    type: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="NAME", help="Only these: step.done, step.*, StepDone. May be given often."),
    ] = None,
    json: AsJson = False,
    store: StorePath = None,
) -> None:
    """Print the log of an execution."""

    async def job(opened: Store) -> None:
        from asyncio import sleep

        from noetl.engine.view import ENDED, envelope, types

        wanted = types(type) if type else None
        execution_id, after = await the_id(opened, id), 0
        while True:
            row = await opened.execution(execution_id)
            for event in await opened.read(execution_id, after):
                after = event.seq
                if wanted is None or event.event_type in wanted:
                    typer.echo(as_json(envelope(event)) if json else line(event))
            if not follow or (row is not None and row.get("status") in ENDED and after >= row["last_seq"]):
                return
            await sleep(_LOOK_S)

    reading(store, job)


def line(event: Event) -> str:
    """Write an event on one line for people."""
    from noetl.cli.progress import clock
    from noetl.engine.view import step_of

    item = "" if event.iteration is None else f"[{event.iteration}]"
    place = f"{event.step_run_id or ''}{item}".removesuffix("#1")
    what = event.entity_id if event.entity_id not in (event.execution_id, step_of(event)) else ""
    payload = as_json(event.payload) if event.payload else ""
    shown = payload if len(payload) <= _MOST_SHOWN else payload[:_MOST_SHOWN] + "…"
    return " ".join(
        part for part in (f"{event.seq:>5} {clock(event.timestamp)} {event.event_type:<26}", place, what, shown) if part
    )
