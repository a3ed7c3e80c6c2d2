"""`noetl logs`: print the output and the errors of an execution's tasks.

Tested in tests/acceptance/executions/test_run_commands.py and test_errors_shown.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.arguments.completers import complete_step
from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.output.format import format_time, to_json
from noetl.cli.output.task_output import output_lines, output_text, task_place
from noetl.cli.runtime.store import read_events, read_history, resolve_id
from noetl.cli.runtime.terminal import echo

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
    """Print the output and the errors of an execution's tasks."""

    async def job(history: History) -> None:
        from noetl.cli.output.failure import ErrorPlaces
        from noetl.engine.state.evolve import evolve
        from noetl.engine.state.execution import Execution

        state, errors = Execution(await resolve_id(history, id)), _Errors()
        places: ErrorPlaces | None = None
        async for event in read_events(history, state.execution_id, follow):
            if places is None:  # the first event names the playbook
                evolve(state, event)
                places = ErrorPlaces.of(history, state)
            own = str(event.step_run_id or "").partition("#")[0]
            if step is not None and own != step:
                continue
            for line in (*output_lines(event), *errors.lines(event)):
                if "error" in line:
                    line["error"] = await places.place(own, line["error"])
                for text in [to_json(line)] if json else _texts(state.execution_id, line):
                    echo(text)

    read_history(store, job)


class _Errors:
    """The errors of tasks, and those of steps that no task has reported before."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Any, str]] = {}  # by run: what failed last, and its message

    def lines(self, event: Event) -> Iterator[dict[str, Any]]:
        error = event.payload.get("error")
        if event.event_type not in ("task.attempt.failed", "task.failed", "step.failed") or not error:
            return
        run, message = str(event.step_run_id or ""), str(error.get("message", ""))
        failed, last = self._last.get(run, (None, None))
        place = task_place(event)
        if event.event_type == "step.failed":
            if last is not None and message.endswith(last):
                return
            place["task"] = error.get("task", event.entity_id)
        elif failed == place:
            return  # the end of a task repeats its last attempt
        else:
            self._last[run] = (place, message)
        yield {
            "at": event.timestamp,
            "level": "error",
            **place,
            "text": message,
            "error": {**error, "task": place["task"]},
        }


def _texts(execution_id: str, line: dict[str, Any]) -> Iterator[str]:
    from noetl.cli.output.failure import error_lines

    for text in error_lines(execution_id, line["error"]) if "error" in line else [line["text"]]:
        yield f"{format_time(line['at'])} {output_text(line, text)}"
