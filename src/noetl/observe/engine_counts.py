"""Numbers of a server's own engine: commits, states, leases, triggers.

Tested in tests/unit/observe/test_engine_counts.py and tests/server/http/test_metrics.py.
"""

from __future__ import annotations

import time

from noetl.observe.counters import Counted, Counts, Spread


class EngineCounts:
    """The numbers of one server's engine that are not in its events."""

    def __init__(self) -> None:
        self._messages = Spread("noetl_commit_messages")
        self._commits = Spread("noetl_commit_duration_seconds")
        self._states = Counts("noetl_state_cache_total")
        self._replays = Spread("noetl_replay_duration_seconds")
        self._expired = Counts("noetl_lease_expiries_total")
        self._lags = Spread("noetl_trigger_lag_seconds")
        self.counted: tuple[Counted, ...] = (
            self._messages, self._commits, self._states, self._replays, self._expired, self._lags,
        )  # fmt: skip

    @staticmethod
    def begin() -> float:
        """Return the start time of something that is measured."""
        return time.perf_counter()

    def committed(self, messages: int, began: float) -> None:
        """Count a transaction and the messages that it made durable."""
        self._commits.observe((), time.perf_counter() - began)
        if messages:
            self._messages.observe((), messages)

    def found_state(self) -> None:
        """Count a state that was in memory."""
        self._states["hit",] += 1

    def replayed(self, began: float) -> None:
        """Count a state that was not in memory, and how long its replay took."""
        self._states["miss",] += 1
        self._replays.observe((), time.perf_counter() - began)

    def expired(self, leases: int) -> None:
        """Count leases that ran out."""
        if leases:
            self._expired[()] += leases

    def fired(self, kind: str, seconds: float) -> None:
        """Count a trigger that started something, and how late it was."""
        self._lags.observe((kind,), max(0.0, seconds))
