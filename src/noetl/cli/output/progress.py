"""How a run is shown while it goes on: lines for logs and pipes, a living picture on a terminal.

Both tell of the same events: steps, loops, retries, waits with their reason. Goes to stderr, so that stdout holds the result
alone. Tested in tests/acceptance/test_run_progress.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from time import time
from typing import TYPE_CHECKING, Any, Protocol

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from noetl.engine.state import Execution, Loop, StepRun
    from noetl.model.events import Event

_LOOP_EVERY_MS = 1_000


class Progress(Protocol):
    """Somebody who is told of every event, with the state after it."""

    def tell(self, event: Event, state: Execution) -> None: ...

    def close(self) -> None: ...


def progress(quiet: bool = False) -> Progress:
    """Choose how to show a run: not at all, as a picture, or as lines."""
    if quiet:
        return Silence()
    return Picture() if sys.stderr.isatty() else Lines()


class Silence:
    """Shows nothing."""

    def tell(self, event: Event, state: Execution) -> None:
        pass

    def close(self) -> None:
        pass


class Lines:
    """Shows one line per thing that happened; a loop at most once a second."""

    def __init__(self, write: Callable[[str], None] | None = None) -> None:
        self._write = write or (lambda line: typer.echo(line, err=True))
        self._loop_told: dict[str, int] = {}

    def tell(self, event: Event, state: Execution) -> None:
        said = sentence(event, state)
        if said is None:
            said = self._loop(event, state)
        if said is not None:
            self._write(f"{clock(event.timestamp)} {said}")

    def _loop(self, event: Event, state: Execution) -> str | None:
        run = state.runs.get(str(event.step_run_id))
        if run is None or run.loop is None or not event.event_type.startswith("loop.iteration."):
            return None
        told = self._loop_told.setdefault(run.run_id, event.timestamp)
        if event.timestamp - told < _LOOP_EVERY_MS:
            return None
        self._loop_told[run.run_id] = event.timestamp
        return f"… {label(run)}: {counted(run.loop)}{pace(run.loop, event.timestamp - run.scheduled_at)}"

    def close(self) -> None:
        pass


class Picture:
    """Shows what has ended as lines, and below them what is under way: times, bars, waits."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False)
        self._state: Execution | None = None
        self._live = Live(get_renderable=self._under_way, console=self._console, refresh_per_second=8, transient=True)
        self._live.start()

    def tell(self, event: Event, state: Execution) -> None:
        self._state = state
        said = sentence(event, state)
        if said is not None and not said.startswith("▶"):
            from rich.text import Text

            style = {"✓": "green", "✗": "red", "↻": "yellow", "⏸": "cyan"}.get(said[0], "")
            self._console.print(Text(said, style=style))

    def close(self) -> None:
        self._live.stop()

    def _under_way(self) -> RenderableType:
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

        # Drawn by a thread of its own: what is looked at twice is taken once.
        since, suspended, loop = seconds(now - run.scheduled_at), run.suspended, run.loop
        if suspended is not None:
            yield from ("⏸", label(run), waiting(suspended.cause, suspended.until, suspended.signal))
        elif loop is not None:
            total = None if loop.cursor else max(1, loop.total)
            yield from ("▶", label(run), ProgressBar(total, loop.ended, width=30))
            yield f"{counted(loop)}{pace(loop, now - run.scheduled_at)} · {since}"
        else:
            yield from ("▶", label(run), since)


def sentence(event: Event, state: Execution) -> str | None:
    """Tell of an event in one line; None where it is not worth one."""
    teller = _TELLERS.get(event.event_type)
    return teller(event, state, event.payload) if teller is not None else None


def _scheduled(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str | None:
    return f"▶ {run_label(event)}" if "number" in payload else None


def _done(event: Event, _state: Execution, _payload: Mapping[str, Any]) -> str:
    return f"✓ {run_label(event)} in {seconds(event.duration_ms or 0)}"


def _failed(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    error = payload.get("error") or {}
    return f"✗ {run_label(event)}: {error.get('kind', 'error')}: {error.get('message', '')}"


def _retried(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    error = payload.get("error") or {}
    reason = error.get("message", "") if isinstance(error, Mapping) else str(error)
    return f"↻ {run_label(event)}: attempt {event.attempt or 1} of {event.entity_id} failed: {reason}"


def _item_failed(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    error = payload.get("error") or {}
    return f"✗ {run_label(event)}: item {event.iteration}: {error.get('message', '')}"


def _suspended(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    item = "" if event.iteration is None else f" item {event.iteration}"
    return f"⏸ {run_label(event)}{item}: {waiting(payload['cause'], payload.get('until'), payload.get('signal'))}"


def _loop_started(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    many = "rows as they come" if payload.get("cursor") else f"{payload.get('total')} items"
    return f"… {run_label(event)}: {many}, {payload.get('mode')}, {payload.get('width')} at once"


def _parked(_event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    return f"⏸ {payload.get('step')}: waits at its gate"


def _received(_event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    return f"· signal {payload.get('name')} received"


def _child(event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    return f"· {run_label(event)}: child {payload.get('path')} is execution {event.entity_id}"


def _paused(_event: Event, _state: Execution, _payload: Mapping[str, Any]) -> str:
    return "⏸ paused: nothing new is scheduled"


def _resumed(_event: Event, _state: Execution, _payload: Mapping[str, Any]) -> str:
    return "· scheduling goes on"


def _cancelled(_event: Event, _state: Execution, payload: Mapping[str, Any]) -> str:
    error = payload.get("error") or {}
    return f"✗ stopping: {error.get('message', payload.get('cause', ''))}"


_TELLERS: dict[str, Callable[[Event, Execution, Mapping[str, Any]], str | None]] = {
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


def waiting(cause: str, until: int | None, signal: str | None) -> str:
    """Tell what a suspended pipeline waits for."""
    end = f" until {clock(until)}" if until is not None else ""
    if signal is not None:
        return f"waits for the signal {signal}{end}"
    words = {"delay": "tries again", "sleep": "sleeps", "playbook": "waits for its child"}
    return words.get(cause, "waits") + end.replace(" until", " at" if cause == "delay" else " until")


def run_label(event: Event) -> str:
    return str(event.step_run_id or event.entity_id).removesuffix("#1")


def label(run: StepRun) -> str:
    return run.run_id.removesuffix("#1")


def counted(loop: Loop) -> str:
    many = f"{loop.ended}" if loop.cursor else f"{loop.ended} of {loop.total}"
    return many + (f", {loop.failed} failed" if loop.failed else "")


def pace(loop: Loop, took: int) -> str:
    """Tell how fast a loop goes and how long it will take."""
    if not loop.ended or took < _LOOP_EVERY_MS:
        return ""
    rate = loop.ended * 1000 / took
    left = "" if loop.cursor else f", {seconds((loop.total - loop.ended) * 1000 / rate)} left"
    return f", {rate:,.0f}/s{left}" if rate >= 1 else f", {rate * 60:.1f}/min{left}"


def seconds(ms: float) -> str:
    """Write a span of time."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 120_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms / 60_000:.0f} min" if ms < 7_200_000 else f"{ms / 3_600_000:.1f} h"


def clock(at: int) -> str:
    """Write a time of day as the clock on the wall has it; with the date where it is another day."""
    then = datetime.fromtimestamp(at / 1000).astimezone()
    today = datetime.now().astimezone().date()
    return f"{then:%H:%M:%S}" if then.date() == today else f"{then:%Y-%m-%d %H:%M:%S}"
