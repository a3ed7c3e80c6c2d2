"""What a worker counts of the attempts that it runs.

Tested in tests/unit/observe/test_task_counts.py.
"""

from __future__ import annotations

from noetl.observe.counters import Counted, Counts, Spread, page


class TaskCounts:
    """Attempts of one worker by kind and pool, and how long they took."""

    def __init__(self) -> None:
        self._started = Counts("noetl_worker_tasks_started_total")
        self._completed = Counts("noetl_worker_tasks_completed_total")
        self._durations = Spread("noetl_worker_task_duration_seconds")
        self._sinks = Spread("noetl_worker_sink_duration_seconds")
        self.counted: tuple[Counted, ...] = (self._started, self._completed, self._durations, self._sinks)

    def begin(self, kind: str, pool: str) -> None:
        """Count an attempt that starts."""
        self._started[kind, pool or "default"] += 1

    def end(self, kind: str, pool: str, seconds: float, *, ok: bool, sink: str | None = None) -> None:
        """Count an attempt that ended, was cancelled or timed out, and its sink."""
        self._completed[kind, pool or "default", "true" if ok else "false"] += 1
        self._durations.observe((kind,), seconds)
        if sink is not None:
            self._sinks.observe((sink,), seconds)

    async def text(self) -> bytes:
        """Return what was counted in the text format of Prometheus."""
        return page(self.counted)
