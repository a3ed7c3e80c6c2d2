"""Random batches: every store returns what the store in memory returns."""

from __future__ import annotations

import random
from typing import Any

import pytest

from noetl.model.work import Lease
from noetl.ports import Claim, Commit, Receipt, Selection
from noetl.stores.memory.store import MemoryStore
from tests.conformance.commits import commit, without_epochs, work
from tests.conformance.conftest import Store

pytestmark = pytest.mark.asyncio
ALL = {"applied", "stale", "duplicate", "fenced"}


class Game:
    """Executions that report in batches; some reports are late, duplicate or stale."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lengths: dict[str, int] = {}
        self._held: list[Lease] = []
        self._sent: list[Commit] = []
        self._started = 0

    def batch(self) -> tuple[list[Commit], list[Claim]]:
        chance = self._random
        made = [self._start() for _ in range(chance.choice((0, 1, 1, 5)))]
        chance.shuffle(self._held)
        count = chance.choice((0, 1, 1, 6))
        made += [self._report(lease) for lease in self._held[:count]]
        del self._held[:count]
        if self._sent and chance.random() < 0.2:
            made.insert(chance.randrange(len(made) + 1), chance.choice(self._sent))
        self._sent += made
        pools = chance.choice((("",), ("",), ("gpu",), ("", "gpu")))
        claims = [Claim(f"w{n}", pools, chance.randrange(3), 10, 20) for n in range(chance.choice((0, 1, 2, 6)))]
        return made, claims

    def take(self, receipt: Receipt) -> None:
        for one in receipt.commits:
            self._lengths[one.execution_id] = max(one.last_seq, self._lengths.get(one.execution_id, 0))
        self._held += [lease for found in receipt.leases for lease in found]

    def _start(self) -> Commit:
        self._started += 1
        return self._made(f"{self._started}", 0, (), "running")

    def _report(self, lease: Lease) -> Commit:
        name, late = lease.work.execution_id, self._random.random() < 0.1
        held = ((lease.work.work_id, lease.epoch - late),)
        at = self._lengths[name] - (self._random.random() < 0.1)
        return self._made(name, at, held, self._random.choice(("running", "running", "completed")))

    def _made(self, name: str, at: int, held: tuple[tuple[str, int], ...], status: str) -> Commit:
        row: dict[str, Any] = {"status": status, "path": "p", "started_at": 5} | (
            {"ended_at": 9} if status[0] == "c" else {}
        )
        count = 0 if status[0] == "c" else self._random.choice((1, 1, 2))
        pool = self._random.choice(("", "", "gpu"))
        follows = tuple(
            work(f"{at}-{n}", execution=name, pool=pool, priority=self._random.randrange(2)) for n in range(count)
        )
        message = f"{name}/0" if self._random.random() < 0.1 else ""  # of its start, which was applied
        return commit(name, at, self._random.choice((1, 3)), message, finished=held, work=follows, projection=row)


async def rows(store: Store) -> list[Any]:
    """Read everything that the batches wrote."""
    feed = [(position.writer_seq, position.event) for position in await store.feed({}, 10_000)]
    queued = [lease.work for lease in await store.claim("rest", ["", "gpu"], 10_000, 10, 20)]
    expired = [(lease.work, exhausted) for lease, exhausted in await store.expired(20, 1)]
    return [feed, await store.executions(Selection(limit=1_000)), queued, expired]


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.chaos) for seed in range(3, 30))])
async def test_a_store_agrees_with_the_one_in_memory(store: Store, seed: int) -> None:
    reference, game, other = MemoryStore(), Game(seed), Game(seed)
    statuses: set[str] = set()
    for played in range(400):
        if played >= 40 and statuses == ALL:
            break
        receipt, expected = await store.commit(*game.batch()), await reference.commit(*other.batch())
        assert without_epochs(receipt) == without_epochs(expected)
        game.take(receipt)
        other.take(expected)
        statuses |= {one.status for one in receipt.commits}
    assert statuses == ALL
    assert await rows(store) == await rows(reference)


async def test_new_executions_are_listed_in_the_order_of_their_first_events(store: Store) -> None:
    row = {"status": "running", "path": "p", "started_at": 5}
    made = [commit("1", count=0), commit("2", projection=row), commit("1", projection=row)]
    await store.commit(made, [])
    assert [found["execution_id"] for found in await store.executions(Selection())] == ["1", "2"]
