"""Kill, freeze, restart and cut off processes: nothing is lost, stuck or doubled.

A short slice of every fault runs by default, more seeds, twice as many executions and longer cuts under `make chaos`. When a
test fails it prints its seed and how to run it again.
"""

from __future__ import annotations

import asyncio
import re
from random import Random
from signal import SIGINT, SIGQUIT, Signals

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.ledger import Ledger
from tests.cluster.load import SLOW, loading, told
from tests.cluster.wires import Mode

pytestmark = pytest.mark.asyncio
MODES: list[Mode] = ["cut", "slow", "hole", "deaf", "open"]
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.chaos) for seed in range(2, 12))]
CUTS = [(1, 3.0), *(pytest.param(seed, 30.0, marks=pytest.mark.chaos) for seed in range(2, 5))]


def some(count: int, seed: int) -> int:
    """Return how many executions to start: half for the seed that always runs."""
    return count // 2 if seed == 1 else count


@pytest.mark.parametrize("seed", SEEDS)
async def test_workers_are_killed(shaken: Cluster, book: Ledger, seed: int) -> None:
    chance = Random(seed)
    with told(shaken, seed):
        async with loading(shaken, book) as load:
            for _ in range(3):
                await load.start(some(4, seed))
                await asyncio.sleep(chance.uniform(0.05, 0.8))
                victim = chance.choice(shaken.working)
                victim.kill()
                await asyncio.sleep(chance.uniform(0.0, 0.5))
                victim.start()
            await load.hold()


@pytest.mark.parametrize("seed", SEEDS)
async def test_servers_are_killed(shaken: Cluster, book: Ledger, seed: int) -> None:
    chance = Random(seed)
    with told(shaken, seed):
        async with loading(shaken, book) as load:
            for _ in range(3):
                starting = asyncio.create_task(load.start(some(4, seed)))
                await asyncio.sleep(chance.uniform(0.0, 0.8))
                victim = chance.choice(shaken.serving)
                victim.kill()
                await asyncio.sleep(chance.uniform(0.0, 0.5))
                victim.start()
                await starting
            await load.hold()


async def test_servers_are_restarted_one_after_the_other_and_nothing_is_done_again(
    system: Cluster, book: Ledger
) -> None:
    with told(system, 0):
        async with loading(system, book) as load:
            for server in system.serving:
                starting = asyncio.create_task(load.start(6))
                await load.until_done(2)
                server.ask_to_end()
                assert await asyncio.to_thread(server.wait) == 0
                said = len(re.findall(r"noetl: http://", server.log))
                server.start()
                await asyncio.to_thread(server.until, r"noetl: http://\S+", said + 1)
                await starting
            await load.hold()
            load.hold_to_once()


@pytest.mark.parametrize("how", [SIGINT, SIGQUIT], ids=["fast", "immediate"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_postgresql_is_restarted(shaken: Cluster, book: Ledger, seed: int, how: Signals) -> None:
    chance = Random(seed)
    with told(shaken, seed):
        async with loading(shaken, book) as load:
            starting = asyncio.create_task(load.start(some(8, seed)))
            await asyncio.sleep(chance.uniform(0.0, 1.0))
            await asyncio.to_thread(shaken.postgres.stop, how)
            await asyncio.sleep(chance.uniform(0.0, 1.0))
            await asyncio.to_thread(shaken.postgres.start)
            await starting
            await load.hold()


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(1, 12))
async def test_a_worker_is_frozen_for_longer_than_its_lease(shaken: Cluster, book: Ledger, seed: int) -> None:
    """Other workers do its work; its late report is fenced and changes nothing."""
    chance = Random(seed)
    with told(shaken, seed):
        async with loading(shaken, book) as load:
            await load.start(6)
            frozen = chance.choice(shaken.working)
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            frozen.freeze()
            try:
                await load.ended()
            finally:
                frozen.thaw()
            await load.hold()


async def test_the_report_of_a_worker_that_was_frozen_is_recorded_as_late(shaken: Cluster, book: Ledger) -> None:
    """It does not hear that it has lost its lease before it has reported."""
    with told(shaken, 0):
        async with loading(shaken, book) as load:
            await load.register(SLOW)
            slow = [await load.other("slow") for _ in range(9)]
            await load.until_asked(slow)
            frozen = shaken.working[2]
            taken = await load.leased_by(frozen.name)
            assert taken
            frozen.freeze()
            try:
                await load.until_nothing_is_leased_by(frozen.name)
                book.go.set()
                assert set((await load.ended()).values()) == {"completed"}
                shaken.wires.become("deaf")
                frozen.thaw()
                for one in taken:
                    late = await load.until_event([one], "report.late")
                    assert late.payload["worker"] == frozen.name
            finally:
                book.go.set()
                frozen.thaw()
                shaken.wires.become("open")
            await load.hold()


@pytest.mark.parametrize("mode", ["cut", "hole", pytest.param("deaf", marks=pytest.mark.chaos)])
@pytest.mark.parametrize(("seed", "seconds"), CUTS)
async def test_a_worker_is_cut_off_for_longer_than_its_lease(
    shaken: Cluster, book: Ledger, seed: int, seconds: float, mode: Mode
) -> None:
    chance = Random(seed)
    with told(shaken, seed):
        async with loading(shaken, book) as load:
            await load.start(some(6, seed))
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            shaken.wires.become(mode)
            await asyncio.sleep(seconds)
            shaken.wires.become("open")
            await load.hold()
            await load.until_worked_by("worker-2")


@pytest.mark.parametrize("upgrades", [True, pytest.param(False, marks=pytest.mark.chaos)], ids=["session", "requests"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_the_network_of_a_worker_is_bad(shaken: Cluster, book: Ledger, seed: int, upgrades: bool) -> None:
    """The network is slow, breaks and drops data repeatedly, for less than a lease."""
    chance = Random(seed)
    with told(shaken, seed):
        async with loading(shaken, book) as load:
            shaken.wires.upgrades = upgrades
            shaken.wires.become("cut")
            starting = asyncio.create_task(load.start(some(10, seed)))
            for _ in range(8):
                shaken.wires.become(chance.choice(MODES))
                await asyncio.sleep(chance.uniform(0.0, 0.5))
            shaken.wires.become("open")
            await starting
            await load.hold()
            await load.until_worked_by("worker-2")
            shaken.wires.upgrades = True


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_server_is_frozen_and_goes_on_with_what_it_knew(shaken: Cluster, book: Ledger, seed: int) -> None:
    chance = Random(seed)
    with told(shaken, seed):
        async with loading(shaken, book) as load:
            await load.start(some(6, seed))
            frozen = chance.choice(shaken.serving)
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            frozen.freeze()
            await asyncio.sleep(3.0)  # longer than the leases that it has given
            frozen.thaw()
            await load.hold()


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(20))
async def test_everything_goes_wrong(shaken: Cluster, book: Ledger, seed: int) -> None:
    chance = Random(seed)
    kinds = ["kill", "freeze", "fast", "immediate", "network", "both servers"]
    with told(shaken, seed):
        async with loading(shaken, book) as load:
            starting = []
            for _ in range(8):
                starting.append(asyncio.create_task(load.start(4)))
                await asyncio.sleep(chance.uniform(0.0, 0.5))
                await break_something(shaken, chance, chance.choice(kinds))
            shaken.wires.become("open")
            await shaken.restored()
            await asyncio.gather(*starting)
            await load.hold()


async def break_something(system: Cluster, chance: Random, kind: str) -> None:
    process, pause = chance.choice([*system.serving, *system.working]), chance.uniform(0.0, 1.0)
    if kind == "kill":
        process.kill()
        await asyncio.sleep(pause)
        process.start()
    elif kind == "freeze":
        process.freeze()
        await asyncio.sleep(4 * pause)
        process.thaw()
    elif kind == "network":
        system.wires.become(chance.choice(MODES))
    elif kind == "both servers":
        for server in system.serving:
            server.kill()
        await asyncio.sleep(pause)
        for server in system.serving:
            server.start()
    else:
        await asyncio.to_thread(system.postgres.stop, SIGINT if kind == "fast" else SIGQUIT)
        await asyncio.sleep(pause)
        await asyncio.to_thread(system.postgres.start)
