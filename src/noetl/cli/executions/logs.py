"""`noetl logs`: prints what the tasks of an execution wrote: the lines of Python code, commands and tools.

Tested in tests/acceptance/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.common.completers import Id, steps
from noetl.cli.common.store import AsJson, Place, as_json, following, reading, the_id

if TYPE_CHECKING:
    from noetl.model.events import Event
    from noetl.ports import History


def command(
    id: Id,
    step: Annotated[
        str | None, typer.Option("--step", metavar="NAME", help="Only the lines of this step.", autocompletion=steps)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay until the execution has ended.")] = False,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Print what the tasks of an execution wrote."""

    async def job(opened: History) -> None:
        async for event in following(opened, await the_id(opened, id), follow):
            for line in lines(event, step):
                typer.echo(as_json(line) if json else shown(line))

    reading(store, job)


def lines(event: Event, step: str | None = None) -> Iterator[dict[str, Any]]:
    """Give the lines that an event carries, each with its place."""
    run = str(event.step_run_id or "")
    if event.event_type != "task.logged" or (step is not None and run.partition("#")[0] != step):
        return
    place = {"run": run, "task": event.entity_id, "iteration": event.iteration, "attempt": event.attempt}
    for at, level, text in event.payload.get("lines", ()):
        yield {"at": at, "level": level, **place, "text": text}
    if event.payload.get("dropped"):
        text = f"{event.payload['dropped']} more lines were not kept"
        yield {"at": event.timestamp, "level": "warning", **place, "text": text}


def shown(line: dict[str, Any]) -> str:
    from noetl.cli.output.progress import clock

    item = "" if line["iteration"] is None else f"[{line['iteration']}]"
    level = "" if line["level"] == "info" else f"{line['level'].upper()} "
    return f"{clock(line['at'])} {line['run'].removesuffix('#1')}{item} {line['task']}: {level}{line['text']}"
