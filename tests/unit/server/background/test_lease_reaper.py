"""Leases: expiry, renewal by heartbeat, and work that kills its workers."""

from __future__ import annotations

import asyncio

import pytest

from noetl.model.errors import StoreUnavailable
from noetl.model.messages import Cancel, Record, Report
from noetl.server.control_plane import LocalControlPlane, Store
from noetl.stores.memory.store import MemoryStore
from noetl.testing.virtual_time import VirtualClock, run
from tests.unit.server.system import RealClock, begin, chain, done, ended, register, report_on


class ForwardClock(RealClock):
    """Clock that a test sets forward, so that leases are long against a pause."""

    ahead_ms = 0

    def now(self) -> int:
        return super().now() + self.ahead_ms


async def expired_after(control: LocalControlPlane, clock: ForwardClock, seconds: int) -> int:
    """Set the clock forward, in steps too short for a sleep of the machine."""
    expired = 0
    for _ in range(0, seconds, 2):
        clock.ahead_ms += 2_000
        expired += await control.lease_reaper.expire()
    return expired


@pytest.mark.asyncio
async def test_a_silent_worker_loses_its_work(store: Store) -> None:
    clock = ForwardClock()
    async with LocalControlPlane(store, clock, lease_s=30) as control:
        execution_id = await begin(control, await register(store))
        [old] = await control.claim("silent", [""], 1, 0)
        await expired_after(control, clock, 32)
        [new] = await control.claim("next", [""], 1, 10)
        assert (new.work.run_id, new.attempt) == (old.work.run_id, 2)
        assert await control.heartbeat("silent", [(old.work.work_id, old.epoch)]) == [old.work.work_id]
        await report_on(control, execution_id, done(new))
        assert (await ended(control, store, execution_id))["status"] == "completed"
        assert await store.inbox(10) == []


@pytest.mark.asyncio
async def test_a_beating_worker_keeps_its_work(store: Store) -> None:
    clock = ForwardClock()
    async with LocalControlPlane(store, clock, lease_s=30) as control:
        await begin(control, await register(store))
        [lease] = await control.claim("alive", [""], 1, 0)
        for _ in range(10):
            assert await expired_after(control, clock, 16) == 0
            assert await control.heartbeat("alive", [(lease.work.work_id, lease.epoch)]) == []
        assert await control.claim("other", [""], 1, 0) == []
        await expired_after(control, clock, 32)
        [again] = await control.claim("other", [""], 1, 10)
        assert (again.work.run_id, again.attempt) == (lease.work.run_id, 2)


async def expired_unserved(store: Store, worker: str) -> tuple[str, int]:
    """Return a lease of a worker that expired while no server ran."""
    async with LocalControlPlane(store, RealClock(), lease_s=0.05) as control:
        await begin(control, await register(store))
        [lease] = await control.claim(worker, [""], 1, 0)
    while RealClock().now() <= lease.until:
        await asyncio.sleep(0.01)
    return lease.work.work_id, lease.epoch


@pytest.mark.asyncio
async def test_a_lease_that_expired_while_no_server_ran_can_still_be_renewed(store: Store) -> None:
    held = await expired_unserved(store, "remote")
    async with LocalControlPlane(store, RealClock()) as control:
        assert await control.lease_reaper.expire() == 0
        assert await control.heartbeat("remote", [held]) == []
        assert await control.claim("other", [""], 1, 0) == []


@pytest.mark.asyncio
async def test_the_lease_of_a_dead_worker_gets_no_grace(store: Store) -> None:
    await expired_unserved(store, "dead")
    async with LocalControlPlane(store, RealClock()) as control:
        assert await control.take_back("dead") == 1
        [lease] = await control.claim("other", [""], 1, 10)
        assert lease.attempt == 2


@pytest.mark.asyncio
async def test_the_grace_ends(store: Store) -> None:
    await expired_unserved(store, "gone")
    async with LocalControlPlane(store, RealClock(), lease_s=0.2) as control:
        [lease] = await control.claim("other", [""], 1, 10)
        assert lease.attempt == 2


@pytest.mark.asyncio
async def test_a_lease_that_expired_while_the_store_was_away_can_still_be_renewed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LocalControlPlane(store, RealClock()) as control:
        await begin(control, await register(store))
        [lease] = await control.claim("remote", [""], 1, 0)
        held = (lease.work.work_id, lease.epoch)
        tried = asyncio.Event()

        async def away(*_: object) -> list[object]:
            tried.set()
            raise StoreUnavailable("it is away")

        with monkeypatch.context() as patched:
            patched.setattr(store, "expired", away)
            await tried.wait()  # it was away at a time after the lease had expired
            await store.expire(lease.work.execution_id, RealClock().now() - 10_000)
        assert await control.lease_reaper.expire() == 0
        assert await control.heartbeat("remote", [held]) == []


@pytest.mark.asyncio
async def test_a_new_owner_goes_on_where_the_last_one_told(store: Store, control: LocalControlPlane) -> None:
    execution_id = await begin(control, await register(store))
    [old] = await control.claim("w", [""], 1, 0)
    record = Record("task.done", RealClock().now(), "one_task", status="ok")
    await report_on(
        control, execution_id, Report("p", "one#1", old.epoch, "w", records=(record,), pipeline={"at": "second"})
    )
    await control.take_over(execution_id)
    [new] = await control.claim("w", [""], 1, 10)
    assert new.work.resume is not None
    assert "second" in str(new.work.resume)


@pytest.mark.asyncio
async def test_work_that_kills_its_workers_fails_the_step(store: Store) -> None:
    async with LocalControlPlane(store, RealClock(), max_attempts=3) as control:
        execution_id = await begin(control, await register(store, chain(2)))
        for attempt in (1, 2, 3):
            [lease] = await control.claim("w", [""], 1, 10)
            assert lease.attempt == attempt
            await control.take_over(execution_id)
        row = await ended(control, store, execution_id)
    assert row["status"] == "failed"
    assert row["error"]["code"] == "LEASE_LOST"
    assert await store.claim("w", [""], 1, 2**60, 2**60) == []


@pytest.mark.asyncio
async def test_a_cancelled_run_is_told_with_the_next_heartbeat(store: Store, control: LocalControlPlane) -> None:
    execution_id = await begin(control, await register(store))
    [lease] = await control.claim("w", [""], 1, 0)
    held = [(lease.work.work_id, lease.epoch)]
    assert await control.heartbeat("w", held) == []
    await control.submit(execution_id, Cancel("c", "enough"))
    assert await control.heartbeat("w", held) == [lease.work.work_id]
    await report_on(control, execution_id, done(lease))
    row = await ended(control, store, execution_id)
    assert row["status"] == "cancelled"
    assert (await store.read(execution_id))[-1].event_type == "report.late"


@pytest.mark.asyncio
async def test_lost_work_waits_before_it_goes_out_again(store: Store) -> None:
    text = chain(1).replace(
        "workflow:", "executor: {spec: {retries: {dispatch: {base_ms: 600, max_ms: 600}}}}\nworkflow:"
    )
    async with LocalControlPlane(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, text))
        await control.claim("w", [""], 1, 0)
        lost_at = RealClock().now()
        await control.take_over(execution_id)
        [again] = await control.claim("w", [""], 1, 10)
        assert RealClock().now() - lost_at >= 300  # half of it at least
        await report_on(control, execution_id, done(again))
        assert (await ended(control, store, execution_id))["status"] == "completed"


def test_a_machine_that_slept_lets_workers_renew_before_it_judges() -> None:
    async def main() -> None:
        store, clock = MemoryStore(), VirtualClock()
        async with LocalControlPlane(store, clock) as control:
            playbook = await register(store)
            for _ in range(2):
                await begin(control, playbook)
            leases = await control.claim("w", [""], 2, 0)
            kept, left = ((lease.work.work_id, lease.epoch) for lease in leases)
            await clock.sleep(10)
            clock.jump(8 * 3_600_000)
            assert await control.lease_reaper.expire() == 0  # also when something else asks for it
            await clock.sleep(1)
            assert await control.heartbeat("w", [kept]) == []
            await clock.sleep(4)
            assert await control.heartbeat("w", [kept, left]) == [left[0]]

    run(main)
