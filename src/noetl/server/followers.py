"""Lets people follow an execution: they read the log, and are woken when there is more.

Nothing is buffered, so a slow follower costs nothing and misses nothing. One that is told of many commits in a row reads
them together, a few times a second; of an end it is told at once. One that wants events of some types only is not woken for
others that come right after what it knows. Whoever waits for an end alone is not a follower: see `endings`. Tested in
tests/unit/server/test_followers.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from operator import attrgetter

from msgspec import Struct, field

from noetl.model.events import Event
from noetl.ports import Clock, EventLog, Position
from noetl.server.endings import ENDED

_LAST = "playbook.processed"  # after it, only late reports and repairs
_PAGE = 500
_BETWEEN_MS = 25  # two reads
_type_of = attrgetter("event_type")


class _Follower(Struct, eq=False):
    after: int = 0  # the last event that it has seen, or need not see
    wanted: frozenset[str] | None = None  # types of events; None: all
    more: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)

    def passes_over(self, events: Sequence[Event]) -> bool:
        """Tell whether events come right after what it has seen, and none of them is for it; they are seen then."""
        if self.wanted is None or not events or events[0].seq != self.after + 1:
            return False
        if not self.wanted.isdisjoint(map(_type_of, events)):
            return False
        self.after = events[-1].seq
        return True


class Followers:
    """Those who follow, by execution."""

    def __init__(self, log: EventLog, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._followers: dict[str, set[_Follower]] = {}
        self._of_all: set[_Follower] = set()

    def tell(self, execution_id: str, ended: bool = False, events: Sequence[Event] = ()) -> None:
        """Wake those who follow one execution, or all; `events` are the new ones, where they are known."""
        for follower in self._followers.get(execution_id, ()):
            if ended or follower.wanted is None or not follower.passes_over(events):
                _wake(follower, ended)
        for follower in self._of_all:
            _wake(follower, ended)

    def tell_all(self) -> None:
        """Wake everybody: somebody else has committed."""
        for followers in (*self._followers.values(), self._of_all):
            for follower in followers:
                follower.more.set()

    @contextmanager
    def _following(self, execution_id: str, follower: _Follower) -> Iterator[_Follower]:
        self._followers.setdefault(execution_id, set()).add(follower)
        try:
            yield follower
        finally:
            self._followers[execution_id].discard(follower)
            if not self._followers[execution_id]:
                del self._followers[execution_id]

    async def follow(self, execution_id: str, after: int = 0) -> AsyncGenerator[Event, None]:
        """Give the events of an execution as they come, until it has ended."""
        async with aclosing(self.follow_batches(execution_id, after)) as batches:
            async for events in batches:
                for event in events:
                    yield event

    async def follow_batches(
        self, execution_id: str, after: int = 0, *, may_be_over: bool = True, wanted: frozenset[str] | None = None
    ) -> AsyncGenerator[list[Event], None]:
        """Give the same events, those together that were read together; where some types are `wanted`, others may be left out.

        Whoever has just seen in its row that the execution had not ended need not ask again whether it `may_be_over`.
        """
        with self._following(execution_id, _Follower(after, None if wanted is None else wanted | {_LAST})) as follower:
            while True:
                follower.more.clear()
                follower.hurry.clear()
                events = await self._log.read(execution_id, follower.after, _PAGE)
                read_at = self._clock.now()
                if events:
                    follower.after = max(follower.after, events[-1].seq)
                    may_be_over = may_be_over or _LAST in map(_type_of, events)
                    yield events
                if len(events) == _PAGE:
                    continue
                if events and events[-1].event_type == _LAST:
                    return  # nothing came after it
                if may_be_over:
                    row = await self._log.execution(execution_id)
                    may_be_over = row is not None and row.get("status") in ENDED
                    if row is not None and may_be_over and follower.after >= row["last_seq"]:
                        return
                    if may_be_over:
                        continue  # it has ended, and there is more to read
                await self._wait(follower, read_at)

    async def follow_all(
        self, position: Mapping[str, int], wanted: frozenset[str] | None = None
    ) -> AsyncGenerator[list[Position], None]:
        """Give the events of all executions after a position as they come, in batches; of `wanted` types, see `feed`."""
        follower = _Follower()
        self._of_all.add(follower)
        after = dict(position)
        try:
            while True:
                follower.more.clear()
                follower.hurry.clear()
                found = await self._log.feed(after, _PAGE, wanted)
                read_at = self._clock.now()
                passed = sum(after.values())
                for one in found:
                    after[one.writer_id] = one.writer_seq
                if found:
                    yield found
                if sum(after.values()) - passed < _PAGE:  # also those that were left out
                    await self._wait(follower, read_at)
        finally:
            self._of_all.discard(follower)

    async def _wait(self, follower: _Follower, read_at: int) -> None:
        await follower.more.wait()
        rest = read_at + _BETWEEN_MS - self._clock.now()
        if rest <= 0 or follower.hurry.is_set():
            return
        hurry = asyncio.ensure_future(follower.hurry.wait())
        pause = asyncio.ensure_future(self._clock.sleep(min(rest, _BETWEEN_MS) / 1000))
        try:
            await asyncio.wait({hurry, pause}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hurry.cancel()
            pause.cancel()


def _wake(follower: _Follower, ended: bool) -> None:
    follower.more.set()
    if ended:
        follower.hurry.set()
