"""Reap expired leases: queue their work again and notify their execution.

While no server runs, the store is away, or this process does not run (a suspended laptop, a frozen machine), no worker can
renew its lease. So leases that expired in that time get a grace period, in which a live worker reconnects and renews
them. Tested in tests/unit/server/background/test_lease_reaper.py.
"""

from __future__ import annotations

import logging

from noetl.model.errors import NoetlError, log_level
from noetl.observe.engine_counts import EngineCounts
from noetl.ports import Clock, WorkQueue
from noetl.server.sequencer.sequencer import Sequencer

_log = logging.getLogger(__name__)
_LATE_MS = 2_000  # a round that is later than this finds leases that could not be renewed
_GRACE_S = 5.0  # in which a live worker has reconnected, also if the first server that it tries is gone


class LeaseReaper:
    """Check for expired leases periodically."""

    def __init__(
        self,
        queue: WorkQueue,
        sequencer: Sequencer,
        clock: Clock,
        counts: EngineCounts | None = None,
        *,
        max_attempts: int = 6,
        every_s: float = 1.0,
    ) -> None:
        self._counts = counts or EngineCounts()
        self._queue = queue
        self._sequencer = sequencer
        self._clock = clock
        self._max_attempts = max_attempts
        self._every_s = every_s
        self._looked_at: int | None = None  # while it runs
        self._grace_ms = round(min(_GRACE_S, 10 * every_s) * 1000)
        self._since = clock.now()  # from when on leases could be renewed
        self._grace_until = self._since + self._grace_ms

    async def expire(self) -> int:
        """Reap leases that expired or reached no worker; return how many expired."""
        await self._sequencer.outstanding.settle()
        now = self._clock.now()
        self._notice_gap(now)
        since = self._since if now < self._grace_until else 0
        expired = await self._queue.expired(now, self._max_attempts, since)
        self._counts.expired(len(expired))
        if expired:
            await self._sequencer.gather()
            self._sequencer.look()
        return len(expired)

    async def run(self) -> None:
        """Reap periodically until cancelled."""
        while True:
            self._looked_at = self._looked_at or self._clock.now()
            try:
                await self.expire()
            except NoetlError as error:
                self._spare(self._grace_ms)
                _log.log(log_level(error), "Expired leases are reaped later: %s", error)
            await self._clock.sleep(self._every_s)

    def _notice_gap(self, now: int) -> None:
        """Begin a grace period if this process did not run for a while."""
        if self._looked_at is not None:
            if now - self._looked_at > 1000 * self._every_s + _LATE_MS:
                # Connected workers renew every second, and may stall for as long as no gap is noticed.
                self._spare(round(2_000 * self._every_s) + _LATE_MS)
            self._looked_at = now

    def _spare(self, milliseconds: int) -> None:
        """Spare leases that have expired by now, for a while."""
        self._since = self._clock.now()
        self._grace_until = self._since + milliseconds
