"""The next batch is decided while one is being committed: what is about other executions, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from noetl.model.errors import StoreUnavailable
from noetl.model.work import Lease
from noetl.ports import Claim, Commit, Receipt
from noetl.server.control import LocalControl
from noetl.stores.memory import MemoryStore
from tests.unit.server.system import RealClock, begin, chain, done, register

pytestmark = pytest.mark.asyncio


class Held(MemoryStore):
    """A store whose commits wait to be let through, or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.through = asyncio.Event()
        self.through.set()
        self.trouble: Exception | None = None
        self.batches: list[list[str]] = []

    async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
        if commits:
            self.batches.append([commit.execution_id for commit in commits])
        await self.through.wait()
        trouble, self.trouble = self.trouble, None
        if trouble is not None:
            raise trouble
        return await super().commit(commits, claims)


async def leased(store: Held, control: LocalControl) -> tuple[Lease, Lease]:
    """Start two executions, and give the work of both."""
    playbook = await register(store, chain(2))
    for name in ("1", "2"):
        await begin(control, playbook, name)
    one, two = await control.claim("w", [""], 2, 1)
    return one, two


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def seqs(control: LocalControl) -> list[int]:
    """How far the two are decided."""
    return [(await control.sequencer.state(name)).seq for name in ("1", "2")]


async def test_other_executions_are_decided_meanwhile_and_committed_next() -> None:
    store = Held()
    async with LocalControl(store, RealClock()) as control:
        one, two = await leased(store, control)
        before = await seqs(control)
        store.batches.clear()
        store.through.clear()
        reports = [asyncio.create_task(control.report("1", done(one), 1))]
        await settled()
        reports.append(asyncio.create_task(control.report("2", done(two), 1)))
        await settled()
        assert store.batches == [["1"]]  # it is being committed
        assert [now > then for now, then in zip(await seqs(control), before, strict=True)] == [True, True]
        assert not any(report.done() for report in reports)
        store.through.set()
        found = await asyncio.gather(*reports)
        assert [[lease.work.step for lease in leases] for leases in found] == [["s1"], ["s1"]]
        assert store.batches[:2] == [["1"], ["2"]]


async def test_the_same_execution_waits_for_its_turn() -> None:
    store = Held()
    async with LocalControl(store, RealClock()) as control:
        one, two = await leased(store, control)
        store.batches.clear()
        store.through.clear()
        first = asyncio.create_task(control.report("1", done(one), 1))
        await settled()
        decided = (await seqs(control))[0]
        again = asyncio.create_task(control.report("1", done(one), 1))
        other = asyncio.create_task(control.report("2", done(two)))
        await settled()
        assert (await seqs(control))[0] == decided
        store.through.set()
        await asyncio.gather(first, again, other)
        # What was sent again is answered from what it led to, after it is there.
        assert store.batches[0] == ["1"]
        assert sum(event.event_type == "step.done" for event in await store.read("1")) == 1


async def test_a_batch_that_fails_takes_nothing_of_the_next_with_it() -> None:
    store = Held()
    async with LocalControl(store, RealClock()) as control:
        one, two = await leased(store, control)
        store.through.clear()
        store.trouble = StoreUnavailable("away")
        reports: list[asyncio.Task[Any]] = [asyncio.create_task(control.report("1", done(one), 1))]
        await settled()
        reports.append(asyncio.create_task(control.report("2", done(two), 1)))
        await settled()
        store.through.set()
        await asyncio.wait_for(asyncio.gather(*reports), 10)
        for name in ("1", "2"):
            events = await store.read(name)
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert sum(event.event_type == "step.done" for event in events) == 1


async def test_ending_in_the_middle_tells_everybody() -> None:
    store = Held()
    async with LocalControl(store, RealClock()) as control:
        one, two = await leased(store, control)
        store.through.clear()
        reports = [asyncio.create_task(control.report("1", done(one)))]
        await settled()
        reports.append(asyncio.create_task(control.report("2", done(two))))
        await settled()
    found = await asyncio.gather(*reports, return_exceptions=True)
    assert all(isinstance(one, StoreUnavailable) for one in found)
