"""Progress of a run on stderr: lines, or a live display on a terminal.

Tested in tests/acceptance/executions/test_run_progress.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from time import time
from typing import TYPE_CHECKING, Any, Protocol

from noetl.cli.output.format import format_duration, format_time, item_count, shorten
from noetl.cli.output.task_output import output_lines, output_text
from noetl.cli.runtime.terminal import echo, escaped

if TYPE_CHECKING:
    from rich.console import RenderableType

    from noetl.engine.state.execution import Execution, Loop, StepRun
    from noetl.model.events import Event

_LOOP_INTERVAL_MS = 1_000
_MAX_OUTPUT_LINES = 1_000  # of a step-run
_MAX_OUTPUT_TEXT = 500  # characters of a line


class Progress(Protocol):
    """Display that gets every event with the state after it."""

    def update(self, event: Event, state: Execution) -> None: ...

    def close(self) -> None: ...


def make_progress(silent: bool = False, quiet: bool = False) -> Progress:
    """Return a silent, live or line display; `quiet` hides what tasks print."""
    if silent:
        return SilentProgress()
    output = None if quiet else TaskOutput()
    return LiveProgress(output) if sys.stderr.isatty() else LineProgress(output=output)


class TaskOutput:
    """Lines that tasks print, up to a number per step-run."""

    def __init__(self) -> None:
        self._shown: dict[str, int] = {}  # lines by run

    def lines(self, event: Event) -> Iterator[str]:
        """Yield the lines of an event that are shown."""
        for line in output_lines(event):
            run = line["run"]
            count = self._shown[run] = self._shown.get(run, 0) + 1
            if count > _MAX_OUTPUT_LINES + 1:
                return
            if count > _MAX_OUTPUT_LINES:
                step = run.partition("#")[0]
                yield f"│ … more output of {step}: `noetl logs {event.execution_id} --step {step}`"
                return
            yield f"│ {output_text(line, shorten(line['text'], _MAX_OUTPUT_TEXT))}"


class SilentProgress:
    """Prints nothing."""

    def update(self, event: Event, state: Execution) -> None:
        pass

    def close(self) -> None:
        pass


class LineProgress:
    """Prints one line per event; a loop at most once a second."""

    def __init__(self, write: Callable[[str], None] | None = None, output: TaskOutput | None = None) -> None:
        self._write = write or (lambda line: echo(line, err=True))
        self._output = output
        self._loop_printed: dict[str, int] = {}

    def update(self, event: Event, state: Execution) -> None:
        text = event_text(event, state)
        if text is None:
            text = self._loop_text(event, state)
        output = self._output.lines(event) if self._output is not None else ()
        for line in (text, *output, *warning_lines(event)):
            if line is not None:
                self._write(f"{format_time(event.timestamp)} {line}")

    def _loop_text(self, event: Event, state: Execution) -> str | None:
        run = state.runs.get(str(event.step_run_id))
        if run is None or run.loop is None or not event.event_type.startswith("loop.iteration."):
            return None
        printed = self._loop_printed.setdefault(run.run_id, event.timestamp)
        if event.timestamp - printed < _LOOP_INTERVAL_MS:
            return None
        self._loop_printed[run.run_id] = event.timestamp
        return f"… {run_label(run)}: {loop_count(run.loop)}{format_rate(run.loop, event.timestamp - run.scheduled_at)}"

    def close(self) -> None:
        pass


class LiveProgress:
    """Prints finished steps as lines, and below them a live table of running ones."""

    def __init__(self, output: TaskOutput | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False)
        self._state: Execution | None = None
        self._output = output
        self._live = Live(
            get_renderable=self._running_table, console=self._console, refresh_per_second=8, transient=True
        )
        self._live.start()

    def update(self, event: Event, state: Execution) -> None:
        self._state = state
        output = self._output.lines(event) if self._output is not None else ()
        for text in (event_text(event, state), *output, *warning_lines(event)):
            if text is not None and not text.startswith("▶"):
                from rich.text import Text

                style = {"✓": "green", "✗": "red", "↻": "yellow", "⚠": "yellow", "⏸": "cyan", "│": "dim"}.get(
                    text[0], ""
                )
                self._console.print(Text(escaped(text), style=style))

    def close(self) -> None:
        self._live.stop()

    def _running_table(self) -> RenderableType:
        from rich.table import Table

        table = Table.grid(padding=(0, 1))
        state = self._state
        if state is None:
            return table
        now = int(time() * 1000)
        runs = list(state.runs.values())
        for run in runs[:20]:
            table.add_row(*self._row(run, now))
        if len(runs) > 20:
            table.add_row("", f"… and {len(runs) - 20} more")
        for step in dict.fromkeys(token.step for token in list(state.tokens.values()) if token.parked):
            table.add_row("⏸", step, "waits at its gate")
        return table

    def _row(self, run: StepRun, now: int) -> Iterator[RenderableType]:
        from rich.progress_bar import ProgressBar

        # Rich renders in its own thread: read each field once.
        since, suspended, loop = format_duration(now - run.scheduled_at), run.suspended, run.loop
        if suspended is not None:
            yield from ("⏸", run_label(run), wait_text(suspended.cause, suspended.until, suspended.signal))
        elif loop is not None:
            total = None if loop.cursor else max(1, loop.total)
            yield from ("▶", run_label(run), ProgressBar(total, loop.ended, width=30))
            yield f"{loop_count(loop)}{format_rate(loop, now - run.scheduled_at)} · {since}"
        else:
            yield from ("▶", run_label(run), since)


def warning_lines(event: Event) -> list[str]:
    """Return the warnings of an event as lines."""
    from noetl.engine.state.warnings import warnings_in

    return [f"⚠ {event_label(event)}: {message}" for message in warnings_in(event)]


def event_text(event: Event, state: Execution) -> str | None:
    """Return an event as one line, or None if it is not shown."""
    formatter = _FORMATTERS.get(event.event_type)
    return formatter(event, state, event.payload) if formatter is not None else None


def _scheduled(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str | None:
    return f"▶ {event_label(event)}" if "number" in payload else None


def _done(event: Event, _state: Execution, _payload: Mapping[str, Any]) -> str:
    return f"✓ {event_label(event)} in {format_duration(event.duration_ms or 0)}"


def _failed(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    error = payload.get("error") or {}
    return f"✗ {event_label(event)}: {error.get('kind', 'error')}: {error.get('message', '')}"


def _retried(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    error = payload.get("error") or {}
    reason = error.get("message", "") if isinstance(error, Mapping) else str(error)
    return f"↻ {event_label(event)}: attempt {event.attempt or 1} of {event.entity_id} failed: {reason}"


def _item_failed(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    error = payload.get("error") or {}
    return f"✗ {event_label(event)}: item {event.iteration}: {error.get('message', '')}"


def _suspended(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    item = "" if event.iteration is None else f" item {event.iteration}"
    return f"⏸ {event_label(event)}{item}: {wait_text(payload['cause'], payload.get('until'), payload.get('signal'))}"


def _loop_started(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    many = "rows from a cursor" if payload.get("cursor") else item_count(payload.get("total") or 0)
    return f"… {event_label(event)}: {many}, {payload.get('mode')}, {payload.get('width')} at a time"


def _parked(_event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    return f"⏸ {payload.get('step')}: waits at its gate"


def _received(_event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    return f"· signal {payload.get('name')} received"


def _child(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    return f"· {event_label(event)}: child {payload.get('path')} is execution {event.entity_id}"


def _paused(_event: Event, _state: Execution, _payload: Mapping[str, Any]) -> str:
    return "⏸ paused: no new steps start"


def _resumed(_event: Event, _state: Execution, _payload: Mapping[str, Any]) -> str:
    return "· unpaused"


def _cancelled(_event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    error = payload.get("error") or {}
    return f"✗ stopping: {error.get('message', payload.get('cause', ''))}"


_FORMATTERS: dict[str, Callable[[Event, Execution, Mapping[str, Any]], str | None]] = {
    "step.scheduled": _scheduled,
    "step.done": _done,
    "step.failed": _failed,
    "task.attempt.failed": _retried,
    "loop.started": _loop_started,
    "loop.iteration.failed": _item_failed,
    "step.suspended": _suspended,
    "token.parked": _parked,
    "signal.received": _received,
    "child.started": _child,
    "playbook.paused": _paused,
    "playbook.resumed": _resumed,
    "execution.cancelled": _cancelled,
}


def wait_text(cause: str, until: int | None, signal: str | None) -> str:
    """Return what a suspended pipeline is waiting for."""
    end = f" until {format_time(until)}" if until is not None else ""
    if signal is not None:
        return f"waits for the signal {signal}{end}"
    words = {"delay": "retries", "sleep": "sleeps", "playbook": "waits for its child"}
    return words.get(cause, "waits") + end.replace(" until", " at" if cause == "delay" else " until")


def event_label(event: Event) -> str:
    return str(event.step_run_id or event.entity_id).removesuffix("#1")


def run_label(run: StepRun) -> str:
    return run.run_id.removesuffix("#1")


def loop_count(loop: Loop) -> str:
    many = f"{loop.ended}" if loop.cursor else f"{loop.ended} of {loop.total}"
    return many + (f", {loop.failed} failed" if loop.failed else "")


def format_rate(loop: Loop, elapsed_ms: int) -> str:
    """Return a loop's rate and the estimated time left."""
    if not loop.ended or elapsed_ms < _LOOP_INTERVAL_MS:
        return ""
    rate = loop.ended * 1000 / elapsed_ms
    left = "" if loop.cursor else f", {format_duration((loop.total - loop.ended) * 1000 / rate)} left"
    return f", {rate:,.0f}/s{left}" if rate >= 1 else f", {rate * 60:.1f}/min{left}"
