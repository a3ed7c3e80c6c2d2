"""What exports count. Tested in tests/conformance/test_log_export.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from noetl.observe.counters import Counted, Counts, Levels
from noetl.ports import Clock

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class _Lag(Levels):
    """Age of the oldest event that is not exported, when the page is read."""

    def __init__(self, clock: Clock) -> None:
        super().__init__("noetl_export_lag_seconds")
        self.oldest: dict[str, int | None] = {}  # target → its time; None: all are exported
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        now = self._clock.now()
        self.clear()
        for target, at in self.oldest.items():
            self[target,] = 0 if at is None else max(0, now - at) / 1000
        yield from super().collect()


class ExportCounts:
    """Exported events and lag by target; only targets that this server exports to."""

    def __init__(self, clock: Clock) -> None:
        self.events = Counts("noetl_export_events_total")
        self.failures = Counts("noetl_export_failures_total")
        self._lag = _Lag(clock)
        self.counted: tuple[Counted, ...] = (self.events, self.failures, self._lag)

    def wait(self, target: str, oldest: int | None) -> None:
        """Note the time of the oldest event that is not exported; None: there is none."""
        self._lag.oldest[target] = oldest

    def leave(self, target: str) -> None:
        """Note that another server exports to a target."""
        self._lag.oldest.pop(target, None)
