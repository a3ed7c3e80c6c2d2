"""Ageing: one server at a time raises the priority of work that waits."""

from __future__ import annotations

import asyncio

from noetl.server.background.flow.ageing import Ageing
from noetl.stores.memory.derived import MemoryDerived
from noetl.stores.memory.store import MemoryStore
from noetl.testing.virtual_time import VirtualClock, run
from tests.conformance.commits import put, work


def ageing(store: MemoryStore, clock: VirtualClock, holder: str) -> Ageing:
    return Ageing(store, MemoryDerived(store), clock, holder=holder, every_s=60)


def test_low_priority_is_served_beside_endless_higher_work() -> None:
    async def scene() -> list[str]:
        store, clock = MemoryStore(), VirtualClock()
        store.commit([put(work("low"), *(work(f"high{n}", priority=3) for n in range(9)))])
        task = asyncio.create_task(ageing(store, clock, "one").run())
        served: list[str] = []
        for _ in range(5):
            [lease] = await store.claim("w", [""], 1, clock.now(), clock.now() + 1)
            served.append(lease.work.step)
            await clock.sleep(61)
        task.cancel()
        return served

    served = run(scene)
    assert served.index("low") == 3  # it reaches their priority after three minutes, and is the oldest


def test_one_of_two_servers_raises_work() -> None:
    async def scene() -> tuple[int, int]:
        store, clock = MemoryStore(), VirtualClock()
        store.commit([put(work("low"), work("high", priority=9))])
        await clock.sleep(61)
        return await ageing(store, clock, "one").age(), await ageing(store, clock, "two").age()

    assert run(scene) == (1, 0)
