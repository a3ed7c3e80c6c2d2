"""Reap expired leases: queue their work again and notify their execution.

A process that begins, or did not run for a while (a suspended laptop, a frozen machine), lets workers renew their leases
before it judges them: they could not either. Tested in tests/unit/server/background/test_lease_reaper.py.
"""

from __future__ import annotations

import logging

from noetl.model.errors import NoetlError, log_level
from noetl.ports import Clock, WorkQueue
from noetl.server.sequencer.sequencer import Sequencer

_log = logging.getLogger(__name__)
_LATE_MS = 2_000  # a round that is later than this finds leases that could not be renewed


class LeaseReaper:
    """Check for expired leases periodically."""

    def __init__(
        self, queue: WorkQueue, sequencer: Sequencer, clock: Clock, *, max_attempts: int = 6, every_s: float = 1.0
    ) -> None:
        self._queue = queue
        self._sequencer = sequencer
        self._clock = clock
        self._max_attempts = max_attempts
        self._every_s = every_s
        self._looked_at: int | None = None  # while it runs

    async def expire(self) -> int:
        """Reap leases that expired or reached no worker; return how many expired."""
        await self._sequencer.outstanding.settle()
        now = self._clock.now()
        expired = [] if self._was_away(now) else await self._queue.expired(now, self._max_attempts)
        if expired:
            await self._sequencer.gather()
            self._sequencer.look()
        return len(expired)

    async def run(self) -> None:
        """Reap periodically until cancelled."""
        while True:
            await self._clock.sleep(2 * self._every_s)  # workers renew every second
            self._looked_at = self._clock.now()
            while not self._was_away(self._clock.now()):
                self._looked_at = self._clock.now()
                try:
                    await self.expire()
                except NoetlError as error:
                    _log.log(log_level(error), "Expired leases are reaped later: %s", error)
                await self._clock.sleep(self._every_s)

    def _was_away(self, now: int) -> bool:
        """Return whether this process did not run, or time jumped, since the last round."""
        return self._looked_at is not None and now - self._looked_at > 1000 * self._every_s + _LATE_MS
