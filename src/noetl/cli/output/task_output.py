"""Lines that tasks printed or logged, as events carry them.

Tested in tests/acceptance/executions/test_task_output.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noetl.model.events import Event


def output_lines(event: Event) -> Iterator[dict[str, Any]]:
    """Yield the lines of an event as data: time, level, place and text."""
    if event.event_type != "task.logged":
        return
    place = task_place(event)
    for at, level, text in event.payload.get("lines", ()):
        yield {"at": at, "level": level, **place, "text": text}
    if event.payload.get("dropped"):
        text = f"{event.payload['dropped']} more lines were dropped"
        yield {"at": event.timestamp, "level": "warning", **place, "text": text}


def task_place(event: Event) -> dict[str, Any]:
    """Return where an event of a task belongs: run, task, iteration, attempt."""
    run = str(event.step_run_id or "")
    return {"run": run, "task": event.entity_id, "iteration": event.iteration, "attempt": event.attempt}


def output_text(line: dict[str, Any], text: str | None = None) -> str:
    """Return a line for people, after its step, item and task."""
    item = "" if line["iteration"] is None else f"[{line['iteration']}]"
    level = "" if line["level"] == "info" else f"{line['level'].upper()} "
    return f"{line['run'].removesuffix('#1')}{item} {line['task']}: {level}{line['text'] if text is None else text}"
