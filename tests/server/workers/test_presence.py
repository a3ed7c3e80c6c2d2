"""Present and missing workers in `explain`, over HTTP and on the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from noetl.ports import WorkerInfo
from noetl.server.workers.presence import attending, groups, pools_of
from noetl.stores.memory.store import MemoryStore
from noetl.stores.memory.team import MemoryTeam
from tests.acceptance.run import noetl
from tests.server.serving import Served, in_process, playbook
from tests.unit.server.system import RealClock

GPU = playbook("  - step: train\n    spec: {pool: gpu, requires: {tags: [cuda]}}\n    tool: {kind: noop}\n", "gpu")
NOW = 1_800_000_000_000


class Idle:
    busy = 0

    def drain(self) -> None:
        """Has no work."""


def worker(name: str, pool: str = "gpu", status: str = "ready", ago_ms: int = 0, *tags: str) -> WorkerInfo:
    return WorkerInfo(name, pool, tags, status=status, seen_at=NOW - ago_ms)


def test_workers_are_counted_by_pool_and_tags() -> None:
    found = groups([worker("a"), worker("b", "gpu,cpu"), worker("c", "gpu", "ready", 0, "cuda")], NOW)
    assert {(one["pool"], one["tags"]): one["workers"] for one in found} == {
        ("gpu", ()): 2,
        ("cpu", ()): 1,
        ("gpu", ("cuda",)): 1,
    }


def test_a_pool_names_the_tags_that_no_ready_worker_has_together() -> None:
    workers = [
        worker("a", "gpu", "ready", 0, "cuda"),
        worker("b", "gpu", "ready", 0, "big"),
        worker("c", "gpu", "draining", 0, "x"),
    ]
    counts = {"pool": "gpu", "leased": 0, "dead": 0, "oldest": NOW}
    depths = [
        {**counts, "requires": ("cuda",), "queued": 3},
        {**counts, "requires": ("big", "cuda"), "queued": 2},
        {**counts, "requires": ("x",), "queued": 1},
        {**counts, "requires": ("y",), "queued": 0},
        {**counts, "requires": (), "queued": 9},
    ]
    [pool] = pools_of(workers, depths)
    assert pool["unmet"] == [
        {"tags": ["big", "cuda"], "queued": 2, "oldest": NOW},
        {"tags": ["x"], "queued": 1, "oldest": NOW},
    ]


@pytest.mark.parametrize(("status", "ago_ms"), [("gone", 1_000), ("draining", 1_000), ("ready", 240_000)])
def test_a_worker_that_takes_nothing_is_not_counted_but_was_seen(status: str, ago_ms: int) -> None:
    [one] = groups([worker("a", status=status, ago_ms=ago_ms)], NOW)
    assert (one["workers"], one["idle_since"]) == (0, NOW - ago_ms)


@pytest.mark.asyncio
async def test_a_worker_is_written_down_while_it_works() -> None:
    team = MemoryTeam(MemoryStore().tables)
    async with attending(team, RealClock(), worker("a"), Idle()):
        assert [one.status for one in await team.workers()] == ["ready"]
    assert [one.status for one in await team.workers()] == ["gone"]


@pytest.mark.asyncio
async def test_a_server_strikes_workers_off_that_were_not_seen_for_a_day(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        team, now = served.services.team, served.services.clock.now()
        await team.enlist(WorkerInfo("gone", "", status="gone", seen_at=now - 90_000_000))
        await team.enlist(WorkerInfo("silent", "", seen_at=now - 3_600_000))
    async with in_process(tmp_path) as served:
        await until_workers(served, ["silent"])


async def until_workers(served: Served, names: list[str]) -> None:
    while [worker.worker_id for worker in await served.services.team.workers()] != names:
        await asyncio.sleep(0.01)


@pytest.mark.asyncio
async def test_explain_tells_of_work_that_no_worker_can_take(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        started = await served.start(GPU)
        path = f"/api/executions/{started}/explain"
        [standing] = (await served.json("GET", path))["standing"]
        assert standing["waits_for"].endswith("pool gpu: no worker with the tags cuda")
        team, now = served.services.team, served.services.clock.now()
        await team.enlist(WorkerInfo("w", "gpu", ("cuda",), status="gone", seen_at=now - 250_000))
        [standing] = (await served.json("GET", path))["standing"]
        assert standing["waits_for"].endswith("pool gpu: no worker with the tags cuda for 4 min")
        ran = noetl("explain", started, "--json", "--store", str(tmp_path / "noetl.db"))
        assert json.loads(ran.out)["standing"][0]["waits_for"] == standing["waits_for"]
        await team.enlist(WorkerInfo("w", "gpu", ("cuda",), seen_at=now))
        [standing] = (await served.json("GET", path))["standing"]
        assert "no worker" not in standing["waits_for"]
