"""Cache of what was collected from logs: a later request reads only newer events.

Bounded by the events that were read, least recently used first. Tested in tests/unit/server/cache/test_collected.py.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, Protocol, TypeVar

from noetl.model.events import Event
from noetl.ports.replay import PAGE, Readable

_MOST_EVENTS: Final = 2_000_000


class Collector(Protocol):
    """Takes the events of a log in their order."""

    def add(self, event: Event) -> None: ...


C = TypeVar("C", bound=Collector)


class _Kept:
    def __init__(self, collector: Any, seq: int) -> None:
        self.collector = collector
        self.first = self.seq = seq
        self.turn = asyncio.Lock()

    async def advance(self, log: Readable, execution_id: str, to: int | None) -> None:
        async with self.turn:
            while to is None or self.seq < to:
                most = PAGE if to is None else min(PAGE, to - self.seq)
                events = await log.read(execution_id, self.seq, most)
                for event in events:
                    self.collector.add(event)
                    self.seq = event.seq
                if len(events) < most:
                    return
                await asyncio.sleep(0)  # other requests go on


class Collected:
    """Collectors by execution and name."""

    def __init__(self, log: Readable, most_events: int = _MOST_EVENTS) -> None:
        self._log = log
        self._most_events = most_events
        self._kept: OrderedDict[tuple[str, Hashable], _Kept] = OrderedDict()

    async def get(
        self, execution_id: str, name: Hashable, make: Callable[[], C], after: int = 0, to: int | None = None
    ) -> C:
        """Return a collector that has every event after one, or up to one.

        `after` counts only when it is made.
        """
        key = (execution_id, name)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = _Kept(make(), after)
        self._kept.move_to_end(key)
        await kept.advance(self._log, execution_id, to)
        events = sum(one.seq - one.first for one in self._kept.values())
        while events > self._most_events and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            events -= oldest.seq - oldest.first
        found: C = kept.collector
        return found

    async def once(self, execution_id: str, collector: C, after: int = 0, to: int | None = None) -> C:
        """Fill a collector with the events after one, or up to one; it is not kept."""
        await _Kept(collector, after).advance(self._log, execution_id, to)
        return collector

    def forget(self, execution_id: str) -> None:
        """Drop an execution that was removed."""
        for key in [key for key in self._kept if key[0] == execution_id]:
            del self._kept[key]
