"""What waits for the sequencer: messages with those who asked, and workers that ask for work.

Data and small rules of order, no I/O. Tested in tests/unit/server/test_inbox.py.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from noetl.model.messages import AnyMessage
from noetl.model.work import Lease, WorkItem
from noetl.ports import Act, Claim, Commit

Kind = tuple[str, tuple[str, ...]]  # of work: its pool, and the tags that it requires
Takes = tuple[tuple[str, ...], tuple[str, ...]]  # what a worker takes: pools, tags
Told = Callable[[list[Lease] | None], None]
_DRY_MS = 1_000  # after that one looks again, whatever is known


class Taker(Protocol):
    """Whoever takes what there is for an ask: mostly somebody who waits for it."""

    def done(self) -> bool:
        """Tell whether nothing is wanted any more."""

    def set_result(self, leases: list[Lease], /) -> None: ...


class Ask(Struct, eq=False):
    """A worker that asks for work; `waits` until there is some, else it is answered with what there is."""

    worker: str
    pools: tuple[str, ...]
    most: int
    answer: Taker
    waits: bool = False
    tags: tuple[str, ...] = ()


class Answer(Struct, frozen=True):
    """What a message came to: the row of its execution, and whether it was applied, a duplicate, or late.

    A worker that reports is given no row, but new work.
    """

    row: Mapping[str, Any]
    status: str = "applied"
    leases: list[Lease] = []


class Entry(Struct, eq=False):
    """A message on its way, and who is told what became of it: by an `answer`, or by a call."""

    execution_id: str
    message: AnyMessage
    answer: asyncio.Future[Answer] | None = None
    act: Act = None  # who sent it
    takes: Takes | None = None  # of a worker that reports
    want: int = 0  # how much new work such a worker asks for with it, until it was served
    leases: list[Lease] = []  # what it was given then
    told: Told | None = None  # is called with that, or with None where the report is to be sent again
    is_own: bool = False  # the system sent it itself, and keeps it in the store until it is applied
    refused: bool = False  # it was decided on a state that is not in the store, or may not be
    late: bool = False  # the store refused it: the lease was gone
    alone: bool = False  # a batch with it could not be written: it is decided by itself
    tries: int = 0
    resolved: dict[str, Any] = {}  # what was loaded for its decision
    trouble: Exception | None = None  # what it needs cannot be had

    @property
    def consumed(self) -> tuple[str, ...]:
        return (self.message.message_id,) if self.is_own else ()


class Outcomes:
    """What messages that came together came to, in order: for each its answer, or why it has none."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._answers = [entry.answer for entry in entries if entry.answer is not None]

    def __await__(self) -> Generator[Any, None, list[Answer | Exception]]:
        told: list[Answer | Exception] = []
        try:
            for answer in self._answers:
                try:
                    told.append((yield from answer))
                except Exception as error:  # noqa: BLE001  told to whoever sent it
                    told.append(error)
        finally:
            for answer in self._answers[len(told) :]:
                answer.cancel()
        return told


class Inbox(Struct):
    """Messages in order of arrival, and workers in order of asking."""

    entries: deque[Entry] = field(default_factory=deque)
    asks: list[Ask] = []  # not yet looked for
    waiting: list[Ask] = []  # looked for in vain
    look: bool = False  # something happened to the queue that is not in a batch: look for all who wait
    dry: dict[Takes, int] = {}  # what the queue has none of, as nothing has come since one looked in vain → until when
    lonely: bool = False  # an entry among those that were put back must be alone
    sent: set[str] = set()  # ids of the system's own messages that are under way

    def idle(self) -> bool:
        return not self.entries and not self.asks and not (self.look and self.waiting)

    def take(self, most: int) -> list[Entry]:
        """Take the next batch; an entry that must be alone is a batch of its own."""
        entries = self.entries
        if len(entries) <= most and not self.lonely:
            batch = list(entries)
            entries.clear()
            return batch
        batch = []
        while entries and len(batch) < most and not (entries[0].alone and batch):
            batch.append(entries.popleft())
            if batch[0].alone:
                break
        self.lonely = self.lonely and bool(entries)
        return batch

    def again(self, entries: Sequence[Entry]) -> None:
        """Put entries back in front, in their order."""
        self.entries.extendleft(reversed(entries))
        self.lonely = self.lonely or any(entry.alone for entry in entries)

    def own(self, execution_id: str, message: AnyMessage) -> bool:
        """Take in a message that the system sent itself; tells whether it was not under way already."""
        if message.message_id in self.sent:
            return False
        self.sent.add(message.message_id)
        self.entries.append(Entry(execution_id, message, is_own=True))
        return True

    def served(self, first: Sequence[Claim], commits: Iterable[Commit], now: int) -> list[Ask]:
        """Choose whose asking goes with a batch: newcomers, and as many who wait as its work is enough for.

        Those who report in it come first.
        """
        chosen, self.asks = self.asks, []
        if self.look:
            chosen = chosen + self.waiting
            self.look = False
        elif self.waiting:
            work = [item for commit in commits for item in commit.work]
            chosen = chosen + self.beside([*first, *chosen], work, now)
        return [ask for ask in dict.fromkeys(chosen) if not ask.answer.done()] if chosen else []

    def beside(self, first: Iterable[Ask | Claim], work: Iterable[WorkItem], now: int) -> list[Ask]:
        """Choose as many who wait as new work is enough for, after those who are served first."""
        fresh: dict[Kind, int] = {}
        for item in work:
            if item.available_at <= now:
                kind = (item.pool, item.requires)
                fresh[kind] = fresh.get(kind, 0) + 1
        if not fresh:
            return []
        for ask in first:
            _takes(ask, fresh)
        return [ask for ask in self.waiting if _takes(ask, fresh) and not ask.answer.done()]

    def ask_no_more(self, ask: Ask) -> None:
        """Let a worker wait no longer."""
        self.waiting = [other for other in self.waiting if other is not ask]

    def left_over(self, work: Iterable[WorkItem]) -> None:
        """Look again for those who wait, where a batch has left work that is for one of them."""
        kinds = {(item.pool, item.requires) for item in work}
        if kinds:
            self.dry.clear()
        if any(fits(ask, *kind) for kind in kinds for ask in self.waiting):
            self.look = True

    def ask(self, ask: Ask, now: int) -> bool:
        """Take in a worker that asks; tells whether the queue has to be looked into for it."""
        if ask.waits and self.dry and self.dry.get((ask.pools, ask.tags), 0) > now:
            if ask not in self.waiting:
                self.waiting.append(ask)
            return False
        self.asks.append(ask)
        return True

    def answered(self, asks: Sequence[Ask], claims: Sequence[Claim], leases: Sequence[Sequence[Lease]]) -> None:
        """Note who goes on waiting after a look into the queue, and what it has none of then."""
        waiting = [ask for ask in dict.fromkeys([*self.waiting, *asks]) if ask.waits and not ask.answer.done()]
        if len(waiting) > 1:  # who was given something and wants more comes after the others
            waiting.sort(key=[ask for ask, given in zip(asks, leases, strict=True) if given].__contains__)
        self.waiting = waiting
        if not self.look:  # else something came meanwhile
            for claim, given in zip(claims, leases, strict=True):
                is_dry = len(given) < claim.most
                self.dry[claim.pools, claim.tags] = claim.now + _DRY_MS if is_dry else 0


def fits(ask: Ask | Claim, pool: str, requires: tuple[str, ...]) -> bool:
    """Tell whether work of this kind is for whoever asks."""
    return pool in ask.pools and (not requires or set(requires).issubset(ask.tags))


def _takes(ask: Ask | Claim, fresh: dict[Kind, int]) -> bool:
    """Take out of the new work what an ask may be given; tells whether that is anything."""
    wanted = ask.most
    for kind, count in fresh.items():
        if count and fits(ask, *kind):
            taken = min(wanted, count)
            fresh[kind] -= taken
            wanted -= taken
    return wanted < ask.most


def pause_of(entries: Iterable[Entry]) -> float:
    """Give the seconds to wait for a store that is away: longer each time, never long."""
    tries = max((entry.tries for entry in entries), default=0)
    return min(0.02 * 2.0**tries, 2.0)
