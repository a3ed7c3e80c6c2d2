"""Limits of the server by pool and kind on every store: never too much is leased."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from noetl.clock import SteadyClock
from noetl.model.work import WORK_LIMITS, Lease, WorkItem
from noetl.ports import Claim, Receipt
from noetl.server.control_plane import LocalControlPlane
from tests.conformance.commits import commit, put, work
from tests.conformance.conftest import Place, Store, Team
from tests.unit.server.system import HEAD, begin, done, register, report_on

pytestmark = pytest.mark.asyncio
HTTP, GPU = "kind http", "pool gpu"
LIMITS = {HTTP: 2, GPU: 1}


def asks(most: int = 9, pools: tuple[str, ...] = ("",), worker: str = "w", **more: Any) -> Claim:
    return Claim(worker, pools, most, 2_000, 9_000, **{"limits": LIMITS, **more})


def http(*names: str, **more: Any) -> list[WorkItem]:
    return [work(name, limits=(HTTP,), **more) for name in names]


def steps(leases: tuple[Lease, ...]) -> list[str]:
    return [lease.work.step for lease in leases]


async def claimed(store: Store, *claims: Claim) -> list[list[str]]:
    return [steps(leases) for leases in (await store.commit([], claims)).leases]


async def test_work_beyond_a_limit_waits_and_other_work_passes_it(store: Store, team: Team) -> None:
    await store.commit([put(*http("a", "b", "c", "d"), work("x"), work("y"))])
    assert await claimed(store, asks(1)) == [["a"]]
    assert await claimed(store, asks()) == [["b", "x", "y"]]
    assert await claimed(store, asks(), asks(worker="v")) == [[], []]
    assert await team.work_limits() == [{"limit": HTTP, "queued": 2, "leased": 2}]
    line = await store.line("1")
    assert line.limits == {"1:c": (HTTP,), "1:d": (HTTP,)}


async def test_what_ends_makes_room_in_the_same_transaction(store: Store) -> None:
    await store.commit([put(*http("a", "b", "c"))])
    [leases] = (await store.commit([], [asks()])).leases
    assert steps(leases) == ["a", "b"]
    ends = commit(at=1, finished=((leases[0].work.work_id, leases[0].epoch),))
    assert [steps(found) for found in (await store.commit([ends], [asks()])).leases] == [["c"]]


async def test_new_work_is_judged_with_the_claims_of_its_batch(store: Store) -> None:
    receipt = await store.commit([put(*http("a", "b", "c"), work("x"))], [asks(1), asks(worker="v")])
    assert [steps(found) for found in receipt.leases] == [["a"], ["b", "x"]]
    assert await claimed(store, asks()) == [[]]


async def test_work_counts_for_each_of_its_limits(store: Store) -> None:
    both = work("both", pool="gpu", limits=(HTTP, GPU))
    await store.commit([put(both, *http("a", "b", pool="gpu"), work("c", pool="gpu", limits=(GPU,)))])
    assert await claimed(store, asks(pools=("gpu",))) == [["both", "a"]]


async def test_tags_and_priorities_keep_their_meaning(store: Store) -> None:
    tagged = http("low", requires=("big",)) + http("high", requires=("big",), priority=5) + http("plain")
    await store.commit([put(*tagged)])
    assert await claimed(store, asks(tags=())) == [["plain"]]
    assert await claimed(store, asks(tags=("big",))) == [["high"]]


async def test_a_limit_that_is_gone_holds_nothing_back(store: Store) -> None:
    await store.commit([put(*http("a", "b", "c", "d"))])
    assert await claimed(store, asks(limits={HTTP: 1})) == [["a"]]
    assert await claimed(store, asks(limits={HTTP: 3})) == [["b", "c"]]
    assert await claimed(store, asks(limits={})) == [["d"]]


async def test_a_lease_that_is_given_back_makes_room(store: Store) -> None:
    await store.commit([put(*http("a", "b", "c"))])
    [leases] = (await store.commit([], [asks()])).leases
    await store.release([(leases[0].work.work_id, leases[0].epoch)], 2_000)
    assert await claimed(store, asks()) == [["a"]]


async def test_servers_that_claim_at_once_never_exceed_a_limit(place: Place) -> None:
    servers = [place.open(), place.open()]
    team = place.team(servers[0])
    await servers[0].commit([put(*http(*(f"n{number}" for number in range(40))))])
    seq, ended = 1, 0
    while ended < 40:
        claims = [_claim(server, asks(2, worker=f"w{number}")) for number in range(3) for server in servers]
        receipts = await asyncio.gather(*claims)
        held = [lease for receipt in receipts for leases in receipt.leases for lease in leases]
        [row] = await team.work_limits()
        assert len(held) == row["leased"] == 2
        finished = tuple((lease.work.work_id, lease.epoch) for lease in held)
        await servers[1].commit([commit(at=seq, finished=finished)])
        seq, ended = seq + 1, ended + len(held)


async def _claim(server: Store, claim: Claim) -> Receipt:
    return await server.commit([], [claim])


async def test_a_waiting_worker_gets_the_place_that_another_server_freed(place: Place) -> None:
    text = f"{HEAD}workflow:\n  - step: one\n    tool: {{kind: noop}}\n"
    defaults = {WORK_LIMITS: {"kind noop": 1}}
    one, two = place.open(), place.open()
    async with (
        LocalControlPlane(one, SteadyClock(), defaults=defaults) as first,
        LocalControlPlane(two, SteadyClock(), defaults=defaults) as second,
    ):
        playbook = await register(one, text)
        for _ in range(3):
            await begin(first, playbook)
        [lease] = await first.claim("w", [""], 5, 10.0)
        assert lease.work.limits == ("kind noop",)
        waiting = [asyncio.create_task(plane.claim("v", [""], 5, 20.0)) for plane in (first, second)]
        for _ in range(2):
            await report_on(first, lease.work.execution_id, done(lease))
            ready, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            waiting = list(left)
            [[lease]] = [task.result() for task in ready]
