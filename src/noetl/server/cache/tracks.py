"""Cache of tracks: extended by the events after them, never rebuilt while cached.

Bounded by their number and by their events, least recently used first; a track that a stream holds stays known. Tested in
tests/unit/server/cache/test_tracks.py.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakValueDictionary

from noetl.engine.plan.plan import Plan
from noetl.engine.queries.track import Track, extend
from noetl.engine.state.execution import Execution
from noetl.model.errors import InvalidInput
from noetl.model.events import Event
from noetl.ports.replay import Readable

_PAGE: Final = 1_000
_MOST: Final = 32
_MOST_EVENTS: Final = 1_000_000  # of all cached tracks

PlanOf = Callable[[str], Awaitable[Plan]]


class LiveTrack:
    """The track of one execution, which advances along its log."""

    def __init__(self, log: Readable, execution_id: str, plan_of: PlanOf) -> None:
        self._log = log
        self._plan_of = plan_of
        self._turn = asyncio.Lock()
        self._state = Execution(execution_id)
        self.track = Track(None)

    async def advance(self) -> Track:
        """Extend the track to the last committed event, and return it."""
        async with self._turn:
            while events := await self._log.read(self._state.execution_id, self.track.seq, _PAGE):
                if not self.track.seq:
                    self.track = Track(await self._plan(events[0]))
                for event in events:
                    extend(self.track, self._state, event)
                if len(events) < _PAGE:
                    break
                await asyncio.sleep(0)  # other requests run between the pages of a long log
        return self.track

    async def _plan(self, first: Event) -> Plan | None:
        try:
            return await self._plan_of(str(first.payload.get("playbook", "")))
        except InvalidInput:  # its playbook is gone: the track has no joins
            return None


class Tracks:
    """Tracks by execution."""

    def __init__(self, log: Readable, plan_of: PlanOf, most: int = _MOST, most_events: int = _MOST_EVENTS) -> None:
        self._log = log
        self._plan_of = plan_of
        self._most, self._most_events = most, most_events
        self._recent: OrderedDict[str, LiveTrack] = OrderedDict()
        self._held: WeakValueDictionary[str, LiveTrack] = WeakValueDictionary()  # also those that streams hold

    async def get(self, execution_id: str) -> LiveTrack:
        """Return the track of an execution, up to its last committed event."""
        live = self._held.get(execution_id)
        if live is None:
            live = self._held[execution_id] = LiveTrack(self._log, execution_id, self._plan_of)
        self._recent[execution_id] = live
        self._recent.move_to_end(execution_id)
        await live.advance()
        self._evict()
        return live

    def known(self, execution_id: str) -> LiveTrack | None:
        """Return a track that is cached; it may have to advance."""
        return self._held.get(execution_id)

    def _evict(self) -> None:
        events = sum(live.track.seq for live in self._recent.values())
        while len(self._recent) > 1 and (len(self._recent) > self._most or events > self._most_events):
            _, oldest = self._recent.popitem(last=False)
            events -= oldest.track.seq

    def forget(self, execution_id: str) -> None:
        """Drop an execution that was removed."""
        self._recent.pop(execution_id, None)
        self._held.pop(execution_id, None)
