"""`noetl logs`: print the output of an execution's tasks.

Tested in tests/acceptance/executions/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.arguments.completers import complete_step
from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.output.format import format_time, to_json
from noetl.cli.runtime.store import read_events, read_history, resolve_id

if TYPE_CHECKING:
    from noetl.model.events import Event
    from noetl.ports import History


def command(
    id: ExecutionId,
    step: Annotated[
        str | None,
        typer.Option("--step", metavar="NAME", help="Only the output of this step.", autocompletion=complete_step),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the output until the execution ends.")] = False,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Print the output of an execution's tasks."""

    async def job(history: History) -> None:
        async for event in read_events(history, await resolve_id(history, id), follow):
            for line in _log_lines(event, step):
                typer.echo(to_json(line) if json else _format_line(line))

    read_history(store, job)


def _log_lines(event: Event, step: str | None) -> Iterator[dict[str, Any]]:
    run = str(event.step_run_id or "")
    if event.event_type != "task.logged" or (step is not None and run.partition("#")[0] != step):
        return
    place = {"run": run, "task": event.entity_id, "iteration": event.iteration, "attempt": event.attempt}
    for at, level, text in event.payload.get("lines", ()):
        yield {"at": at, "level": level, **place, "text": text}
    if event.payload.get("dropped"):
        text = f"{event.payload['dropped']} more lines were dropped"
        yield {"at": event.timestamp, "level": "warning", **place, "text": text}


def _format_line(line: dict[str, Any]) -> str:
    item = "" if line["iteration"] is None else f"[{line['iteration']}]"
    level = "" if line["level"] == "info" else f"{line['level'].upper()} "
    return f"{format_time(line['at'])} {line['run'].removesuffix('#1')}{item} {line['task']}: {level}{line['text']}"
