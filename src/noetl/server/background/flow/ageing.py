"""Raise the priority of work that waits long, so that no priority starves another.

One server at a time does it. Tested in tests/unit/server/background/flow/test_ageing.py and tests/conformance/test_work_queue.py.
"""

from __future__ import annotations

import logging
from typing import Protocol

from noetl.model.errors import NoetlError, log_level
from noetl.ports import Clock, WorkQueue

_log = logging.getLogger(__name__)
_DUTY = "ageing"


class Duties(Protocol):
    """Duties that one of several servers has."""

    async def on_duty(self, name: str, holder: str, now: int, until: int) -> bool: ...


class Ageing:
    """Raise waiting work by one priority per interval that it has waited."""

    def __init__(self, queue: WorkQueue, duties: Duties, clock: Clock, *, holder: str, every_s: float) -> None:
        self._queue = queue
        self._duties = duties
        self._clock = clock
        self._holder = holder
        self._every_s = every_s

    async def age(self) -> int:
        """Raise work that has waited an interval; return how much was raised."""
        now, interval = self._clock.now(), round(self._every_s * 1000)
        if not await self._duties.on_duty(_DUTY, self._holder, now, now + 2 * interval):
            return 0
        return await self._queue.age(now, now - interval)

    async def run(self) -> None:
        """Raise periodically until cancelled."""
        while True:
            await self._clock.sleep(self._every_s)
            try:
                await self.age()
            except NoetlError as error:
                _log.log(log_level(error), "The priority of waiting work rises later: %s", error)
