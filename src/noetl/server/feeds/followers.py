"""Follow events of one or all executions: commits wake readers of the log.

Nothing is buffered, so a slow follower costs no memory and misses nothing. Commits in quick succession are read together;
the end of an execution wakes its followers at once. A follower of some types of events is not woken for others. To wait for
an end without reading events, see `endings`. Tested in tests/unit/server/feeds/test_followers.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from operator import attrgetter

from msgspec import Struct, field

from noetl.model.events import Event
from noetl.ports import Clock, Commit, EventLog, Position
from noetl.server.feeds.completion import ENDED
from noetl.server.sequencer.commit_hooks import CommitHooks

_LAST = "playbook.processed"  # after it, only late reports and repairs
_AT_END = frozenset({"playbook.finished", _LAST})  # only the commit that ends an execution has them
_PAGE = 500
_MOST_PASSED = 100  # commits after which a follower of all is woken anyway, to advance its position
_BETWEEN_MS = 25  # minimum time between two reads
_type_of = attrgetter("event_type")


class _Follower(Struct, eq=False):
    after: int = 0  # the last event that it has seen or can skip
    wanted: frozenset[str] | None = None  # types of events; None: all
    passed: int = 0  # commits since its last read that did not wake it
    at_end: bool = False  # it only wants events of the end
    more: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.at_end = self.wanted is not None and self.wanted <= _AT_END

    def passes_over(self, commit: Commit) -> bool:
        """Skip the next commit if it has no wanted events; return whether it did."""
        if commit.expected_seq != self.after or (not self.at_end and self.wants(commit)):
            return False
        self.after += len(commit.events)
        return True

    def wants(self, commit: Commit) -> bool:
        """Return whether a commit has wanted events."""
        return self.wanted is None or not self.wanted.isdisjoint(map(_type_of, commit.events))

    def wake(self, ended: bool) -> None:
        self.more.set()
        if ended:
            self.hurry.set()


class Followers:
    """Followers by execution, and those of all executions."""

    def __init__(self, log: EventLog, clock: Clock, listeners: CommitHooks) -> None:
        self._log = log
        self._clock = clock
        self._followers: dict[str, set[_Follower]] = {}
        self._of_all: set[_Follower] = set()
        listeners.register(commits=self.committed, doubt=self.doubt)

    def committed(self, commits: Sequence[Commit]) -> None:
        """Wake the followers that commits concern."""
        followers = self._followers
        if followers:
            for commit in commits:
                if commit.execution_id in followers:
                    ended = "ended_at" in commit.projection
                    for follower in followers[commit.execution_id]:
                        if ended or not follower.passes_over(commit):
                            follower.wake(ended)
        if self._of_all:
            self._wake_followers_of_all(commits)

    def _wake_followers_of_all(self, commits: Sequence[Commit]) -> None:
        ended = any("ended_at" in commit.projection for commit in commits)
        for follower in self._of_all:
            if not ended and (follower.at_end or not any(map(follower.wants, commits))):
                follower.passed += len(commits)
                if follower.passed < _MOST_PASSED:
                    continue
            follower.wake(ended)

    def doubt(self, execution_id: str) -> None:
        """Wake the followers of an execution whose status is unknown here."""
        for follower in (*self._followers.get(execution_id, ()), *self._of_all):
            follower.wake(True)

    def wake_all(self) -> None:
        """Wake all followers: another server has committed."""
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
        """Yield the events of an execution as they are committed, until it has ended."""
        async with aclosing(self.follow_batches(execution_id, after)) as batches:
            async for events in batches:
                for event in events:
                    yield event

    async def follow_batches(
        self, execution_id: str, after: int = 0, *, may_be_over: bool = True, wanted: frozenset[str] | None = None
    ) -> AsyncGenerator[list[Event], None]:
        """Yield batches with all `wanted` events; `may_be_over=False` saves a read."""
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
        """Yield events of all executions after a position; for `wanted` see `feed`."""
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
                if sum(after.values()) - passed < _PAGE:  # events that were left out count too
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
