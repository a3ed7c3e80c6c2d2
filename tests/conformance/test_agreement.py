"""Random operations: all stores return the same results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.model.work import Lease
from noetl.ports import Claim, Commit, Selection
from noetl.stores.memory.store import MemoryStore
from noetl.stores.postgres.store import PostgresStore
from noetl.stores.sqlite.store import SqliteStore
from tests.conformance.commits import commit, signal, without_epochs, work
from tests.conformance.conftest import Store
from tests.databases import fresh_database

pytestmark = pytest.mark.asyncio
NAMES = st.sampled_from("abc")
EXECUTIONS = st.sampled_from("12")
POOLS = st.sampled_from(["", "p"])
TIMES = st.integers(0, 6)

pieces = st.builds(
    lambda name, pool, priority, at, requires: (name, pool, priority, at, requires),
    NAMES,
    POOLS,
    st.integers(0, 1),
    st.sampled_from([0, 0, 4]),
    st.sampled_from([(), (), ("x",), ("y", "x")]),
)
commits = st.fixed_dictionaries(
    {
        "execution": EXECUTIONS,
        "behind": st.sampled_from([0, 0, 0, 0, 1]),  # how stale the expected seq is
        "count": st.integers(0, 2),
        "message": st.integers(0, 30),
        "work": st.lists(pieces, max_size=2),
        "finished": st.lists(st.integers(0, 5), max_size=1),  # index of a lease, counted from the last
        "held": st.lists(st.integers(0, 5), max_size=1),
        "dropped": st.lists(NAMES, max_size=1),
        "timers": st.lists(st.tuples(NAMES, TIMES), max_size=1),
        "cleared": st.lists(NAMES, max_size=1),
        "inbox": st.lists(st.tuples(EXECUTIONS, NAMES), max_size=1),
        "consumed": st.lists(NAMES, max_size=1),
    }
)
claims = st.tuples(st.lists(POOLS, max_size=2), st.integers(0, 2), st.sampled_from([(), ("x",), ("x", "y")]))
actions = st.one_of(
    st.tuples(st.just("commit"), st.lists(commits, min_size=1, max_size=3), st.lists(claims, max_size=2)),
    st.tuples(st.just("claim"), claims),
    st.tuples(st.just("extend"), st.integers(0, 5)),
    st.tuples(st.just("release"), st.integers(0, 5)),
    st.tuples(st.just("abandon"), st.integers(0, 5)),
    st.tuples(st.just("disown"), st.integers(0, 5)),
    st.tuples(st.just("expired"), st.integers(1, 3)),
    st.tuples(st.just("expire"), EXECUTIONS),
    st.tuples(st.just("remove"), EXECUTIONS),
)


def _row(number: int) -> dict[str, Any]:
    """Make a projection; one in four has ended."""
    return {"status": f"after {number}", **({"ended_at": number} if number % 4 == 0 else {})}


class Player:
    """Runs operations on a store; each depends only on earlier results of the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = 0
        self.seqs = {"1": 0, "2": 0}
        self.leases: list[Lease] = []

    async def play(self, action: tuple[Any, ...]) -> Any:
        self.now += 1
        return await getattr(self, action[0])(*action[1:])

    def held(self, number: int) -> list[tuple[str, int]]:
        lease = self.leases[-1 - number] if number < len(self.leases) else None
        return [] if lease is None else [(lease.work.work_id, lease.epoch)]

    def _commit(self, given: dict[str, Any], seq: int) -> Commit:
        execution = given["execution"]
        made = [
            work(name, execution=execution, pool=pool, priority=priority, available_at=at, requires=requires)
            for name, pool, priority, at, requires in given["work"]
        ]
        return commit(
            execution,
            max(seq - given["behind"], 0),
            given["count"],
            f"m{given['message']}",
            work=tuple(made),
            finished=tuple(found for number in given["finished"] for found in self.held(number)),
            held=tuple(found for number in given["held"] for found in self.held(number)),
            dropped=tuple(f"{execution}:{name}" for name in given["dropped"]),
            timers=tuple(given["timers"]),
            cleared=tuple(given["cleared"]),
            inbox=tuple((to, signal(name)) for to, name in given["inbox"]),
            consumed=tuple(f"message-{name}" for name in given["consumed"]),
            projection=_row(given["message"]) if given["count"] else {},
        )

    async def commit(self, batch: list[dict[str, Any]], asked: list[tuple[list[str], int, tuple[str, ...]]]) -> Any:
        seqs, made = dict(self.seqs), []
        for given_commit in batch:
            one = self._commit(given_commit, seqs[given_commit["execution"]])
            seqs[one.execution_id] = one.expected_seq + len(one.events)
            made.append(one)
        receipt = await self.store.commit(made, [self._claim(*one) for one in asked])
        for done in receipt.commits:
            self.seqs[done.execution_id] = done.last_seq
        self._take([lease for leases in receipt.leases for lease in leases])
        return receipt

    def _take(self, found: Iterable[Lease]) -> None:
        for lease in found:
            assert all(old.epoch < lease.epoch for old in self.leases if old.work.work_id == lease.work.work_id)
            self.leases.append(lease)

    def _claim(self, pools: list[str], most: int, tags: tuple[str, ...]) -> Claim:
        return Claim("w", tuple(pools), most, self.now, self.now + 3, tags)

    async def claim(self, asked: tuple[list[str], int, tuple[str, ...]]) -> Any:
        found = await self.store.claim("w", asked[0], asked[1], self.now, self.now + 3, asked[2])
        self._take(found)
        return found

    async def extend(self, number: int) -> Any:
        return await self.store.extend("w", self.held(number), self.now + 4)

    async def release(self, number: int) -> Any:
        return await self.store.release(self.held(number), self.now)

    async def abandon(self, number: int) -> Any:
        return await self.store.abandon("w", self.held(number), self.now, self.now + 5)

    async def disown(self, number: int) -> Any:
        return await self.store.disown("w", self.held(number), self.now)

    async def expired(self, most: int) -> Any:
        return await self.store.expired(self.now, most)

    async def expire(self, execution: str) -> Any:
        return await self.store.expire(execution, self.now)

    async def remove(self, execution: str) -> Any:
        removed = await self.store.remove(execution)
        if removed:
            self.seqs[execution] = 0
        return removed

    async def everything(self) -> Any:
        return [
            [(place.writer_seq, place.event) for place in await self.store.feed({}, 100)],
            list((await self.store.writers()).values()),
            [await self.store.read(name) for name in "12"],
            await self.store.executions(Selection()),
            sorted(await self.store.due(10**6, 100)),
            await self.store.inbox(100),
            await self.store.next_time(self.now),
        ]


async def agree(story: list[tuple[Any, ...]], *stores: Store) -> None:
    try:
        one, two = (Player(store) for store in stores)
        for action in story:
            assert without_epochs(await one.play(action)) == without_epochs(await two.play(action))
            assert without_epochs(await one.everything()) == without_epochs(await two.everything())
    finally:
        for store in stores:
            await store.close()


@settings(max_examples=settings().max_examples)
@given(st.lists(actions, min_size=3, max_size=14))
async def test_the_stores_agree(story: list[tuple[Any, ...]]) -> None:
    await agree(story, MemoryStore(), SqliteStore(":memory:"))


@settings(max_examples=settings().max_examples // 3)
@given(st.lists(actions, min_size=6, max_size=14))
async def test_postgres_agrees(story: list[tuple[Any, ...]]) -> None:
    await agree(story, MemoryStore(), PostgresStore(fresh_database()))
