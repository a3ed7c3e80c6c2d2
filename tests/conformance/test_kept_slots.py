"""Slots kept for idle playbooks, on every store: these start beside a full queue."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.clock import SteadyClock
from noetl.model.messages import Start
from noetl.model.work import Lease, WorkItem, asked_work, kept_slots, playbook_of
from noetl.ports import Claim
from noetl.server.control_plane import LocalControlPlane
from tests.conformance.commits import commit, put, work
from tests.conformance.conftest import Store
from tests.unit.server.system import chain, done, register, report_on

pytestmark = pytest.mark.asyncio


def of(path: str, *names: str, **more: Any) -> list[WorkItem]:
    return [work(name, flow=f"{path} (new)", **more) for name in names]


def asks(most: int = 2, *, is_for_idle: bool = True, **more: Any) -> Claim:
    return Claim("w", ("",), most, 2_000, 9_000, is_for_idle=is_for_idle, **more)


def steps(leases: tuple[Lease, ...]) -> list[str]:
    return [lease.work.step for lease in leases]


async def claimed(store: Store, *claims: Claim) -> list[list[str]]:
    return [steps(leases) for leases in (await store.commit([], claims)).leases]


async def test_only_playbooks_without_leased_work_are_served(store: Store) -> None:
    await store.commit([put(*of("noisy", "a", "b", "c", "d"))])
    assert await claimed(store, asks(2, is_for_idle=False)) == [["a", "b"]]
    assert await claimed(store, asks()) == [[]]
    await store.commit([put(*of("quiet", "x", "y"), *of("third", "z"), execution="2")])
    assert await claimed(store, asks(5)) == [["x", "z"]]  # one of each
    assert await claimed(store, asks(5)) == [[]]
    assert await claimed(store, asks(9, is_for_idle=False)) == [["c", "d", "y"]]


async def test_a_step_of_an_execution_that_has_begun_belongs_to_its_playbook(store: Store) -> None:
    begun = work("b", flow="noisy#17")
    await store.commit([put(*of("noisy", "a"), begun)])
    assert await claimed(store, asks(1, is_for_idle=False)) == [["a"]]
    assert await claimed(store, asks()) == [[]]
    assert [playbook_of(flow) for flow in ("a/b (new)", "a/b#17", "a#b#17")] == ["a/b", "a/b", "a#b"]


async def test_new_work_is_leased_in_its_own_commit(store: Store) -> None:
    await store.commit([put(*of("noisy", "a"))], [asks(1, is_for_idle=False)])
    new = put(*of("noisy", "b"), *of("quiet", "x"), execution="2")
    receipt = await store.commit([new], [asks(1)])
    assert [steps(leases) for leases in receipt.leases] == [["x"]]
    [leases] = (await store.commit([], [asks(1, is_for_idle=False)])).leases
    assert steps(leases) == ["b"]


async def test_work_that_ends_in_the_same_commit_is_no_longer_leased(store: Store) -> None:
    await store.commit([put(*of("quiet", "x", "y"))])
    [[lease]] = (await store.commit([], [asks(1)])).leases
    ends = commit(at=1, finished=((lease.work.work_id, lease.epoch),))
    assert [steps(found) for found in (await store.commit([ends], [asks(1)])).leases] == [["y"]]


async def test_limits_of_the_server_hold_for_kept_slots(store: Store) -> None:
    limited = of("quiet", "x", limits=("kind http",)), of("quiet", "y"), of("third", "z", limits=("kind http",))
    await store.commit([put(*of("first", "a", limits=("kind http",)), *limited[0], *limited[1], *limited[2])])
    limits = {"kind http": 1}
    assert await claimed(store, asks(1, limits=limits)) == [["a"]]
    assert await claimed(store, asks(5, limits=limits)) == [["y"]]  # the limit is reached: other work passes


async def test_a_full_worker_starts_an_idle_playbook_at_once(store: Store) -> None:
    delivered = list[Lease]()
    async with LocalControlPlane(store, SteadyClock()) as control:
        noisy, quiet = [await register(store, chain(2), path) for path in ("team/noisy", "team/quiet")]
        for name in map(str, range(100, 140)):
            await control.submit(name, Start(f"start-{name}", "team/noisy", noisy))
        subscription = control.subscribe("w", ("",), 32, delivered.extend, lambda _: None)
        while len(delivered) < 30:
            await control.submit("100", Start("start-100", "team/noisy", noisy))  # a duplicate: one turn
        assert len(delivered) == 30
        for name in ("900", "901"):
            await control.submit(name, Start(f"start-{name}", "team/quiet", quiet))
        assert [lease.work.execution_id for lease in delivered[30:]] == ["900"]  # and the next waits for its turn
        await report_on(control, "900", done(delivered[30]))
        assert [lease.work.execution_id for lease in delivered[31:]] == ["901"]  # none of its playbook was running
        subscription.set_capacity(3)
        await report_on(control, "100", done(delivered[0]))
        assert len(delivered) == 33  # a slot that is not kept is for the work that is first


async def test_how_much_a_worker_asks_for() -> None:
    assert [kept_slots(capacity) for capacity in (1, 15, 16, 32, 64)] == [0, 0, 1, 2, 4]
    assert [asked_work(free, 2) for free in (32, 3, 2, 1)] == [(30, False), (1, False), (2, True), (1, True)]
    assert [asked_work(free, 0) for free in (5, 1)] == [(5, False), (1, False)]
    assert [asked_work(free, 2)[0] for free in (0, -1)] == [0, 0]
