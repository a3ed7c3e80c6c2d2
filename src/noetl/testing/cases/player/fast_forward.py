"""Virtual time that skips housekeeping: 30 idle days take milliseconds.

Server and worker poll leases, timers and progress many times a second. After a while of nothing else, time advances to
the next relevant moment: a timer of the store, delayed work, the end of a tool, a message.
Tested in tests/unit/testing/test_cases.py.
"""

from __future__ import annotations

import asyncio
from typing import Final

from noetl.stores.memory.store import MemoryStore
from noetl.testing.virtual_time import BEGIN, VirtualClock, VirtualLoop

_PATIENCE: Final = 30  # housekeeping wake-ups, about two seconds of them, before skipping ahead


class FastForward:
    """Tracks which sleeps are housekeeping, and when the store has something due."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._soft: set[asyncio.TimerHandle] = set()
        self._quiet = 0
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop = loop
        loop.leap_by(self._leap)

    def clock(self, soft: frozenset[float] | None = None) -> VirtualClock:
        """Return a clock whose sleeps (all, or those of these durations) are housekeeping."""
        return _SoftClock(self, soft)

    async def sleep(self, seconds: float) -> None:
        """Sleep without keeping time from advancing further."""
        future = self._loop.create_future()
        handle = self._loop.call_later(seconds, _wake, future)
        self._soft.add(handle)
        try:
            await future
        finally:
            handle.cancel()
            self._soft.discard(handle)

    def _leap(self, due: float) -> float:
        hard = min(
            (one.when() for one in self._loop.scheduled if one not in self._soft and not one.cancelled()), default=None
        )
        if hard is None or hard <= due:
            self._quiet = 0
            return due
        self._quiet += 1
        if self._quiet < _PATIENCE:
            return due
        self._quiet = 0
        return max(due, min(hard, self._next_of_store()))

    def _next_of_store(self) -> float:
        tables = self._store.tables
        later = [row.available_at for row in tables.queue.values() if row.state == "queued"]
        moments = [(at - BEGIN) / 1000 for at in (*tables.timers.values(), *later)]
        return min((at for at in moments if at > self._loop.time()), default=float("inf"))


class _SoftClock(VirtualClock):
    def __init__(self, leaping: FastForward, soft: frozenset[float] | None) -> None:
        super().__init__()
        self._leaping = leaping
        self._softly = soft

    async def sleep(self, seconds: float) -> None:
        if self._softly is None or seconds in self._softly:
            await self._leaping.sleep(seconds)
        else:
            await asyncio.sleep(seconds)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
