"""Control plane in one process: following, children, hashes, other writers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from noetl.model.errors import InvalidInput
from noetl.model.events import Event
from noetl.model.messages import Cancel, Report, Signal, Suspension
from noetl.model.work import Lease
from noetl.ports import Selection
from noetl.server.control_plane import LocalControlPlane, Store
from noetl.stores.sqlite.store import SqliteStore
from tests.unit.server.system import HEAD, ONE_STEP, RealClock, begin, chain, done, ended, register, report_on, workers

pytestmark = pytest.mark.asyncio
GATE = (
    HEAD
    + """
workflow:
  - step: gate
    spec: {policy: {admit: {rules: [{when: "{{ ctx.signals.go is defined }}", then: {allow: true}}]}}}
    tool: {kind: noop}
"""
)


def calls(lease: Lease, path: str, **more: Any) -> Report:
    """Return the report of a pipeline that waits for a child."""
    name = f"{lease.work.work_id}:{lease.epoch}"
    suspension = Suspension("playbook", {"at": "task"}, child={"path": path, "payload": {"n": 1}, **more})
    return Report(name, lease.work.run_id, lease.epoch, lease.worker, suspension=suspension)


async def test_what_another_process_commits_while_this_one_starts_is_not_missed(tmp_path: Path) -> None:
    class Slow(SqliteStore):
        seen = asyncio.Event()

        async def version(self) -> int:
            await self.seen.wait()
            return await super().version()

    one, two = SqliteStore(tmp_path / "noetl.db"), Slow(tmp_path / "noetl.db")
    async with LocalControlPlane(one, RealClock()) as first:
        execution_id = await begin(first, await register(one, GATE))
        async with LocalControlPlane(two, RealClock(), look_s=600.0) as second:
            followed = second.follow(execution_id)
            assert (await anext(followed)).seq == 1
            rest = asyncio.create_task(_all(followed))
            await asyncio.sleep(0.05)  # it has read all that there is
            await first.submit(execution_id, Cancel("c", "enough"))
            Slow.seen.set()
            assert (await asyncio.wait_for(rest, 30))[-1].event_type == "playbook.processed"
    await one.close()
    await two.close()


async def _all(events: AsyncIterator[Event]) -> list[Event]:
    return [event async for event in events]


async def test_following_gives_every_event_once_and_ends(store: Store, control: LocalControlPlane) -> None:
    playbook = await register(store, chain(30))
    execution_id = await begin(control, playbook)

    async def follow(after: int = 0) -> list[int]:
        return [event.seq async for event in control.follow(execution_id, after)]

    followers = [asyncio.create_task(follow()), asyncio.create_task(follow(5))]
    async with workers(control):
        found = await asyncio.gather(*followers)
    last = len(await store.read(execution_id))
    assert found == [list(range(1, last + 1)), list(range(6, last + 1))]
    assert await follow(last) == []
    assert len(await follow()) == last


async def test_following_an_execution_of_another_process(tmp_path: Path) -> None:
    one, two = SqliteStore(tmp_path / "noetl.db"), SqliteStore(tmp_path / "noetl.db")
    async with LocalControlPlane(one, RealClock()) as driver, LocalControlPlane(two, RealClock()) as reader:
        execution_id = await begin(driver, await register(one, chain(5)))
        following = asyncio.create_task(ended(reader, two, execution_id))
        async with workers(driver):
            assert (await following)["status"] == "completed"
    await one.close()
    await two.close()


async def test_a_signal_from_another_process_moves_a_driven_execution(tmp_path: Path) -> None:
    one, two = SqliteStore(tmp_path / "noetl.db"), SqliteStore(tmp_path / "noetl.db")
    async with LocalControlPlane(one, RealClock()) as driver, workers(driver):
        execution_id = await begin(driver, await register(one, GATE))
        async with LocalControlPlane(two, RealClock()) as other:
            row = await other.submit(execution_id, Signal("s", "go", 1))
        assert row["status"] == "running"
        assert (await ended(driver, one, execution_id))["status"] == "completed"
    await one.close()
    await two.close()


async def test_a_child_holds_no_worker_and_its_result_comes_back(store: Store, control: LocalControlPlane) -> None:
    parent = await register(store)
    await register(store, ONE_STEP + "workload: {n: 0}\n", "tests/child")
    execution_id = await begin(control, parent)
    [lease] = await control.claim("w", [""], 1, 0)
    await report_on(control, execution_id, calls(lease, "tests/child"))
    [child] = await control.claim("w", [""], 1, 10)
    assert child.work.execution_id != execution_id
    await report_on(control, child.work.execution_id, done(child, {"answer": 42}))
    [again] = await control.claim("w", [""], 1, 10)
    assert again.work.run_id == lease.work.run_id
    assert again.work.resume is not None
    wake = again.work.resume["wake"]
    assert (wake["by"], wake["status"], wake["result"]) == ("child", "completed", {"answer": 42})
    row = await store.execution(child.work.execution_id)
    assert row is not None
    assert row["parent"] == execution_id
    assert await store.inbox(10) == []


@pytest.mark.parametrize("more", [{}, {"version": 7}, {"version": "odd"}])
async def test_a_child_that_is_not_in_the_catalog_is_told_to_its_parent(
    store: Store, control: LocalControlPlane, more: dict[str, Any]
) -> None:
    execution_id = await begin(control, await register(store))
    [lease] = await control.claim("w", [""], 1, 0)
    path = "tests/test" if more else "tests/nowhere"
    await report_on(control, execution_id, calls(lease, path, **more))
    [again] = await control.claim("w", [""], 1, 10)
    assert again.work.resume is not None
    wake = again.work.resume["wake"]
    assert wake["status"] == "failed"
    assert path in wake["error"]["message"]
    assert len(await store.executions(Selection())) == 1


async def test_cancelling_a_parent_cancels_its_children(store: Store, control: LocalControlPlane) -> None:
    execution_id = await begin(control, await register(store))
    [lease] = await control.claim("w", [""], 1, 0)
    await report_on(control, execution_id, calls(lease, "tests/test"))
    [child] = await control.claim("w", [""], 1, 10)
    await control.submit(execution_id, Cancel("c", "enough"))
    row = await ended(control, store, child.work.execution_id)
    assert row["status"] == "cancelled"
    assert await control.heartbeat("w", [(child.work.work_id, child.epoch)]) == [child.work.work_id]


async def test_a_pinned_playbook_is_given_by_its_hash(store: Store, control: LocalControlPlane) -> None:
    playbook = await register(store)
    assert await control.playbook(playbook) == await store.canonical(playbook)
    with pytest.raises(InvalidInput, match="nothing"):
        await control.playbook("nothing")


async def test_a_report_asks_in_the_pools_of_its_worker(store: Store, control: LocalControlPlane) -> None:
    text = chain(2).replace("tool:", "spec: {pool: special}\n    tool:")
    execution_id = await begin(control, await register(store, text))
    assert await control.claim("w", [""], 1, 0) == []
    [lease] = await control.claim("s", ["special"], 1, 0)
    [following] = await report_on(control, execution_id, done(lease), want=1)
    assert (following.work.step, following.worker) == ("s1", "s")
