"""Timers fire in time and once, also when set again and after a restart."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from noetl.model.messages import Record, Report, Suspension
from noetl.model.work import Lease
from noetl.ports import Commit
from noetl.server.control_plane import LocalControlPlane, Store
from tests.unit.server.system import RealClock, begin, chain, done, ended, register, report_on, workers

pytestmark = pytest.mark.asyncio


def asleep(lease: Lease, until: int, **more: Any) -> Report:
    """Return the report of a pipeline that sleeps."""
    name = f"{lease.work.work_id}:{lease.epoch}"
    suspension = Suspension("sleep", {"at": "task"}, until)
    return Report(name, lease.work.run_id, lease.epoch, lease.worker, suspension=suspension, **more)


async def test_a_sleeping_run_goes_on_in_time_as_often_as_it_sleeps(store: Store, control: LocalControlPlane) -> None:
    execution_id = await begin(control, await register(store))
    [lease] = await control.claim("w", [""], 1, 0)
    for _ in range(3):
        until = RealClock().now() + 40
        assert await report_on(control, execution_id, asleep(lease, until), want=1) == []
        [lease] = await control.claim("w", [""], 1, 10)
        assert RealClock().now() >= until
        assert lease.work.run_id == "one#1"
        assert lease.work.resume is not None
    await report_on(control, execution_id, done(lease))
    row = await ended(control, store, execution_id)
    assert row["status"] == "completed"
    found = Counter(event.event_type for event in await store.read(execution_id))
    assert (found["timer.set"], found["timer.fired"]) == (3, 3)
    assert await store.due(2**60, 10) == []


async def test_a_timer_survives_the_process(store: Store) -> None:
    async with LocalControlPlane(store, RealClock()) as control:
        execution_id = await begin(control, await register(store))
        [lease] = await control.claim("w", [""], 1, 0)
        await report_on(control, execution_id, asleep(lease, RealClock().now() + 30))
    async with LocalControlPlane(store, RealClock()) as control, workers(control):
        assert (await ended(control, store, execution_id))["status"] == "completed"


async def test_a_timer_that_nobody_waits_for_is_cleared(store: Store, control: LocalControlPlane) -> None:
    execution_id = await begin(control, await register(store, chain(2)))
    last = len(await store.read(execution_id))
    await store.commit([Commit(execution_id, last, (), timers=(("stray", 1),))])
    async with asyncio.timeout(10):
        while await store.due(2**60, 10):
            await asyncio.sleep(0.01)
    assert len(await store.read(execution_id)) == last


async def test_a_time_out_ends_the_step(store: Store, control: LocalControlPlane) -> None:
    text = chain(1).replace("tool:", "spec: {timeout_s: 0.05}\n    tool:")
    execution_id = await begin(control, await register(store, text))
    [lease] = await control.claim("w", [""], 1, 0)
    began = Report("began", lease.work.run_id, lease.epoch, "w", (Record("task.started", RealClock().now(), "t"),))
    await report_on(control, execution_id, began)
    row = await ended(control, store, execution_id)
    assert row["status"] == "failed"
    assert row["error"]["kind"] == "timeout"
    assert await control.heartbeat("w", [(lease.work.work_id, lease.epoch)]) == [lease.work.work_id]


async def test_many_timers_at_once(store: Store, control: LocalControlPlane) -> None:
    playbook = await register(store)
    ids = [await begin(control, playbook) for _ in range(50)]
    leases = await control.claim("w", [""], 50, 0)
    until = RealClock().now() + 30
    await asyncio.gather(*(report_on(control, lease.work.execution_id, asleep(lease, until)) for lease in leases))
    async with workers(control, 2):
        rows = [await ended(control, store, execution_id) for execution_id in ids]
    assert {row["status"] for row in rows} == {"completed"}
