"""Lets people follow an execution: they read the log, and are woken when there is more.

Nothing is buffered, so a slow follower costs nothing and misses nothing. One that is told of many commits in a row reads
them together, a few times a second; of an end it is told at once. One that wants events of some types only is not woken for
others; and whoever wants those of the end alone costs no look at the events of other commits. Whoever waits for an end
without reading is not a follower: see `endings`. Tested in tests/unit/server/test_followers.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from operator import attrgetter

from msgspec import Struct, field

from noetl.model.events import Event
from noetl.ports import Clock, Commit, EventLog, Position
from noetl.server.endings import ENDED
from noetl.server.listeners import Listeners

_LAST = "playbook.processed"  # after it, only late reports and repairs
_AT_END = frozenset({"playbook.finished", _LAST})  # only the commit that ends an execution has them
_PAGE = 500
_MOST_PASSED = 100  # commits in a row that a follower of all is not woken for, so that its position moves along
_BETWEEN_MS = 25  # two reads
_type_of = attrgetter("event_type")


class _Follower(Struct, eq=False):
    after: int = 0  # the last event that it has seen, or need not see
    wanted: frozenset[str] | None = None  # types of events; None: all
    passed: int = 0  # commits that it was not woken for since its last read
    at_end: bool = False  # it wants events of the end alone
    more: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.at_end = self.wanted is not None and self.wanted <= _AT_END

    def passes_over(self, commit: Commit) -> bool:
        """Tell whether a commit that ends nothing comes right after what it has seen, and is not for it; it is seen then."""
        if commit.expected_seq != self.after or (not self.at_end and self.wants(commit)):
            return False
        self.after += len(commit.events)
        return True

    def wants(self, commit: Commit) -> bool:
        """Tell whether a commit has events for it."""
        return self.wanted is None or not self.wanted.isdisjoint(map(_type_of, commit.events))

    def wake(self, ended: bool) -> None:
        self.more.set()
        if ended:
            self.hurry.set()


class Followers:
    """Those who follow, by execution."""

    def __init__(self, log: EventLog, clock: Clock, listeners: Listeners) -> None:
        self._log = log
        self._clock = clock
        self._followers: dict[str, set[_Follower]] = {}
        self._of_all: set[_Follower] = set()
        listeners.on_commits.append(self.committed)
        listeners.on_doubt.append(self.doubt)

    def committed(self, commits: Sequence[Commit]) -> None:
        """Wake those whom commits concern."""
        followers = self._followers
        if followers:
            for commit in commits:
                if commit.execution_id in followers:
                    ended = "ended_at" in commit.projection
                    for follower in followers[commit.execution_id]:
                        if ended or not follower.passes_over(commit):
                            follower.wake(ended)
        if self._of_all:
            self._tell_of_all(commits)

    def _tell_of_all(self, commits: Sequence[Commit]) -> None:
        ended = any("ended_at" in commit.projection for commit in commits)
        for follower in self._of_all:
            if not ended and (follower.at_end or not any(map(follower.wants, commits))):
                follower.passed += len(commits)
                if follower.passed < _MOST_PASSED:
                    continue
            follower.wake(ended)

    def doubt(self, execution_id: str) -> None:
        """Wake those who follow an execution that has changed, nobody knows how, or follow all."""
        for follower in (*self._followers.get(execution_id, ()), *self._of_all):
            follower.wake(True)

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
        follower = _Follower(0, wanted)
        self._of_all.add(follower)
        after = dict(position)
        try:
            while True:
                follower.more.clear()
                follower.hurry.clear()
                follower.passed = 0
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
