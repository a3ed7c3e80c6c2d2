"""Cache of the steps of ended executions, which never change, for statistics.

One request reads a bounded number of events. What it read stays here, so the next request reads on. Tested in
tests/server/api/test_statistics.py.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from noetl.engine.queries.history.statistics import StepTimes, step_times
from noetl.engine.queries.track import Track, extend
from noetl.engine.state.execution import Execution
from noetl.ports.replay import PAGE, Readable

MOST_EVENTS: Final = 40_000  # that one request reads
_MOST_KEPT: Final = 1_000_000  # events of all executions in memory


class StepTimesCache:
    """Steps by execution and its last event; least recently used ones go first."""

    def __init__(self, log: Readable, most_events: int = MOST_EVENTS, most_kept: int = _MOST_KEPT) -> None:
        self._log = log
        self._most_events, self._most_kept = most_events, most_kept
        self._events = 0  # of all that are kept
        self._kept: OrderedDict[tuple[str, int], dict[str, StepTimes]] = OrderedDict()

    async def of(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, StepTimes] | None]:
        """Return the steps of executions; None for those for which no events were left."""
        left, found = self._most_events, list[dict[str, StepTimes] | None]()
        for row in rows:
            key = (str(row["execution_id"]), int(row["last_seq"]))
            if key not in self._kept and key[1] <= left:
                left -= key[1]
                times = await self._read(key[0])
                self._events += key[1] if key not in self._kept else 0  # another request may have read it meanwhile
                self._kept[key] = times
            if key in self._kept:
                self._kept.move_to_end(key)
            found.append(self._kept.get(key))
        while self._events > self._most_kept:
            self._events -= self._kept.popitem(last=False)[0][1]
        return found

    async def _read(self, execution_id: str) -> dict[str, StepTimes]:
        track, state = Track(None), Execution(execution_id)
        while events := await self._log.read(execution_id, track.seq, PAGE):
            for event in events:
                extend(track, state, event)
            await asyncio.sleep(0)  # other requests go on
            if len(events) < PAGE:
                break
        return step_times(track)
