"""What was handed out: with which report, what is out now, and what goes back because nobody took it.

The store decides who holds a lease; this saves asking it. Tested in tests/unit/server/test_sequencer.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from noetl.model.errors import StoreUnavailable
from noetl.model.work import Lease
from noetl.ports import Claim, Clock, Commit, WorkQueue
from noetl.server.inbox import Ask

_log = logging.getLogger(__name__)
_MOST_ANSWERS = 1_024  # kept for reports that are sent again
_MOST_OUT = 4_096  # remembered; work of which no end was heard is forgotten with the others


class Handed:
    """Leases that a sequencer gave away."""

    def __init__(self, queue: WorkQueue, clock: Clock, look: Callable[[], None]) -> None:
        self._queue = queue
        self._clock = clock
        self._look = look
        self._answers: OrderedDict[str, Sequence[Lease]] = OrderedDict()
        self.out: set[str] = set()  # pieces of work, as far as was heard
        self._returns: set[asyncio.Task[None]] = set()
        self._unreturned: list[tuple[str, int]] = []  # (work_id, epoch) that the store could not take back
        self._doubts: list[tuple[str, int]] = []  # (worker, until) of leases that may be there, and nobody was told of

    def gave(self, leases: Sequence[Lease], message_id: str | None = None) -> None:
        """Note what somebody has now, and with which report it went out."""
        for lease in leases:
            self.out.add(lease.work.work_id)
        if len(self.out) > _MOST_OUT:
            self.out.clear()
        if message_id is not None and leases:
            self.remember(message_id, leases)

    def answer(self, asks: Sequence[Ask], leases: Sequence[Sequence[Lease]]) -> None:
        """Give those who asked what there is for them; whoever waits and gets nothing goes on waiting."""
        unwanted: list[Lease] = []
        for ask, found in zip(asks, leases, strict=True):
            if ask.answer.done():  # whoever asked went away while the batch was written
                unwanted += found
            elif found or not ask.waits:
                ask.answer.set_result(list(found))
                self.gave(found)
        self.give_back(unwanted)

    def applied(self, commit: Commit) -> None:
        """Note what a commit took out of the queue."""
        for work_id, _ in commit.finished:
            self.out.discard(work_id)
        if commit.dropped:
            self.out.difference_update(commit.dropped)

    def with_report(self, message_id: str) -> Sequence[Lease]:
        """Give the leases that went out with a report before."""
        return self._answers.get(message_id, ())

    def remember(self, message_id: str, leases: Sequence[Lease]) -> None:
        """Keep what went out with a report, for when it is sent again."""
        self._answers[message_id] = leases
        if len(self._answers) > _MOST_ANSWERS:
            self._answers.popitem(last=False)

    def take_back(self, message_id: str, leases: Sequence[Lease] | None = None) -> None:
        """Put work back that went out with a report, or was to, since whoever sent it is not there any more."""
        if leases is None or self._answers.get(message_id) is leases:  # another copy of it may have others
            leases = self._answers.pop(message_id, ())
        self.give_back(leases)

    def give_back(self, leases: Sequence[Lease]) -> None:
        """Put work back that was handed to somebody who is not there any more."""
        if leases:
            task = asyncio.create_task(self._give_back(leases))
            self._returns.add(task)
            task.add_done_callback(self._returns.discard)

    async def _give_back(self, leases: Sequence[Lease]) -> None:
        self.out.difference_update(lease.work.work_id for lease in leases)
        try:
            await self._queue.release([(lease.work.work_id, lease.epoch) for lease in leases], self._clock.now())
        except StoreUnavailable as error:
            _log.warning("%d leases that nobody took wait for the store: %s", len(leases), error)
            self._unreturned += [(lease.work.work_id, lease.epoch) for lease in leases]
        self._look()

    def doubt(self, claims: Iterable[Claim]) -> None:
        """Note who asked with a commit of unknown outcome: if it was written after all, nobody has been told."""
        self._doubts += [(claim.worker, claim.until) for claim in claims]

    async def settle(self) -> None:
        """Give back what nobody took and the store could not take back before, as soon as it is there again."""
        if not self._unreturned and not self._doubts:
            return
        now, back = self._clock.now(), self._unreturned
        doubts = [doubt for doubt in self._doubts if doubt[1] > now]
        self._unreturned, self._doubts = [], []
        try:
            found = [held for doubt in doubts for held in await self._queue.leased(*doubt) if held[0] not in self.out]
            await self._queue.release([*back, *found], now)
        except StoreUnavailable:
            self._unreturned += back
            self._doubts += doubts
            raise
        self._look()
