"""Outstanding leases of a sequencer: by report, delivered, to be returned.

The store decides which worker holds a lease; this cache saves queries. Tested in
tests/unit/server/sequencer/test_sequencer.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from noetl.model.errors import StoreUnavailable, log_level
from noetl.model.work import Lease
from noetl.ports import Claim, Clock, Commit, WorkQueue

_log = logging.getLogger(__name__)
_MOST_REPORTS = 1_024  # whose leases are remembered, for when one is sent again
_MOST_OUT = 4_096  # remembered leases; above that all are forgotten, which only costs time


class OutstandingLeases:
    """Outstanding leases, as far as this process knows."""

    def __init__(self, queue: WorkQueue, clock: Clock, look: Callable[[], None]) -> None:
        self._queue = queue
        self._clock = clock
        self._look = look
        self._by_report: OrderedDict[str, Sequence[Lease]] = OrderedDict()
        self._out: set[str] = set()  # work ids
        self._returns: set[asyncio.Task[None]] = set()
        self._unreturned: list[tuple[str, int]] = []  # (work_id, epoch) that the store could not take back
        self._doubts: list[tuple[str, int]] = []  # (worker, until) of leases that may exist and were not delivered

    def add(self, leases: Sequence[Lease]) -> None:
        """Note leases that were delivered."""
        for lease in leases:
            self._out.add(lease.work.work_id)
        if len(self._out) > _MOST_OUT:
            self._out.clear()

    def remove_of(self, commit: Commit) -> None:
        """Note what an applied commit took out of the queue."""
        for work_id, _ in commit.finished:
            self._out.discard(work_id)
        if commit.dropped:
            self._out.difference_update(commit.dropped)

    def with_report(self, message_id: str) -> Sequence[Lease]:
        """Return the leases that were granted with a report."""
        return self._by_report.get(message_id, ())

    def remember(self, message_id: str, leases: Sequence[Lease]) -> None:
        """Remember the leases granted with a report, in case it is sent again."""
        self._by_report[message_id] = leases
        if len(self._by_report) > _MOST_REPORTS:
            self._by_report.popitem(last=False)

    def take_back(self, message_id: str, leases: Sequence[Lease]) -> None:
        """Return the leases of a report to the queue, since its sender is gone."""
        if self._by_report.get(message_id) is leases:  # another copy of the report may have others
            del self._by_report[message_id]
        self.give_back(leases)

    def give_back(self, leases: Sequence[Lease]) -> None:
        """Return leases to the queue that could not be delivered."""
        if leases:
            task = asyncio.create_task(self._give_back(leases))
            self._returns.add(task)
            task.add_done_callback(self._returns.discard)

    async def _give_back(self, leases: Sequence[Lease]) -> None:
        self._out.difference_update(lease.work.work_id for lease in leases)
        try:
            await self._queue.release([(lease.work.work_id, lease.epoch) for lease in leases], self._clock.now())
        except StoreUnavailable as error:
            _log.log(log_level(error), "%d undelivered leases wait for the store: %s", len(leases), error)
            self._unreturned += [(lease.work.work_id, lease.epoch) for lease in leases]
        self._look()

    def doubt(self, claims: Iterable[Claim]) -> None:
        """Note claims of a commit of unknown outcome: no worker got its leases, if any."""
        self._doubts += [(claim.worker, claim.until) for claim in claims]

    async def settle(self) -> None:
        """Return undelivered leases that could not be returned. Raises StoreUnavailable."""
        if not self._unreturned and not self._doubts:
            return
        now, back = self._clock.now(), self._unreturned
        doubts = [doubt for doubt in self._doubts if doubt[1] > now]
        self._unreturned, self._doubts = [], []
        try:
            lost = [held for doubt in doubts for held in await self._queue.leased(*doubt) if held[0] not in self._out]
            await self._queue.release([*back, *lost], now)
        except StoreUnavailable:
            self._unreturned += back
            self._doubts += doubts
            raise
        self._look()
