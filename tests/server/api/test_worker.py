"""The worker's protocol over plain HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noetl.dsl.tree.pin import unpinned
from noetl.server.workers import finished
from noetl.wire import session as frames
from tests.server.serving import ONE, TWO, Served, in_process, listening, session

pytestmark = pytest.mark.asyncio


def report(lease: dict[str, Any], **more: Any) -> dict[str, Any]:
    work = lease["work"]
    done = {"type": "Report", "message_id": f"{work['work_id']}@{lease['epoch']}.1", "run_id": work["run_id"]}
    done |= {"epoch": lease["epoch"], "ending": {"status": "ok", "result": 7}}
    return {"id": "r", "worker": "w", "execution_id": work["execution_id"], "report": done, **more}


async def hello(served: Served, name: str = "w", **more: Any) -> Any:
    return await served.json("POST", "/api/worker/hello", {"worker": name, "acks": False, **more})


async def test_a_worker_claims_reports_and_receives_the_next_work(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        welcome = await hello(served)
        assert (welcome["type"], welcome["worker"], welcome["lease_ms"]) == ("welcome", "w", 10_000)
        started = await served.start(TWO)
        (first,) = (await served.json("POST", "/api/worker/claim", {"id": "c", "worker": "w"}))["leases"]
        tree = await served.http.get(f"/api/playbooks/{first['work']['playbook']}")
        assert "immutable" in tree.headers["cache-control"]
        assert [step.name for step in unpinned(tree.content).workflow] == ["one", "two"]
        answer = await served.json("POST", "/api/worker/report", report(first, want=1))
        (second,) = answer["leases"]
        again = await served.json("POST", "/api/worker/report", report(first, want=0))
        assert again["status"] == "duplicate"
        held = [[second["work"]["work_id"], second["epoch"]]]
        answer = await served.json("POST", "/api/worker/heartbeat", {"worker": "w", "held": held})
        assert answer == {"type": "stop", "now": answer["now"]}
        await served.json("POST", "/api/worker/ack", {"worker": "w", "held": held})
        await served.json("POST", "/api/worker/report", report(second))
        assert (await served.until(started, "completed"))["result"] == 7


async def test_a_worker_that_the_server_does_not_know_says_hello_first(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        told = await served.json("POST", "/api/worker/claim", {"id": "c", "worker": "w"}, 409)
        assert "hello" in told["fix"]


async def test_what_is_released_can_be_claimed_again(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await hello(served)
        await served.start(ONE)
        (lease,) = (await served.json("POST", "/api/worker/claim", {"id": "1", "worker": "w"}))["leases"]
        held = [[lease["work"]["work_id"], lease["epoch"]]]
        await served.json("POST", "/api/worker/release", {"worker": "w", "held": held})
        (again,) = (await served.json("POST", "/api/worker/claim", {"id": "2", "worker": "w", "wait_s": 5}))["leases"]
        assert again["epoch"] > lease["epoch"]


async def test_a_report_for_an_unknown_execution_is_not_found(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await hello(served)
        lease = {"work": {"work_id": "5:x#1", "execution_id": "5", "run_id": "x#1"}, "epoch": 1}
        await served.json("POST", "/api/worker/report", report(lease), 404)


async def test_pools_and_workers_are_listed(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await hello(served, "a", pools=["", "gpu"], capacity=3)
        await served.json("POST", "/api/workers", {"worker_id": "b", "pool": "cpu"}, 201)
        assert (await served.json("POST", "/api/workers/b/heartbeat", {"active": 2}))["status"] == "ready"
        await served.json("POST", "/api/workers/nobody/heartbeat", {}, 404)
        await served.start(ONE)
        pools = {row["pool"]: row for row in (await served.json("GET", "/api/pools"))["pools"]}
        assert (pools[""]["queued"], pools[""]["workers"], pools["gpu"]["capacity"]) == (1, 1, 3)
        assert (await served.json("POST", "/api/workers/b/drain"))["status"] == "draining"
        await served.json("DELETE", "/api/workers/b")
        assert "GET /api/workers" in (await served.json("GET", "/api/workers/b", None, 404))["fix"]
        assert [row["worker_id"] for row in (await served.json("GET", "/api/workers"))["workers"]] == ["a"]


async def test_a_limit_of_the_server_is_shown_and_explained(tmp_path: Path) -> None:
    limits = {"kind noop": 1, "pool gpu": 3}
    async with listening(tmp_path, work_limits=limits) as served, session(served) as worker:
        first, second = await served.start(ONE), await served.start(ONE)
        leased = await worker.leases(frames.Claim("c", 5))
        assert [lease.work.execution_id for lease in leased.leases] == [first]
        rows = (await served.json("GET", "/api/queue"))["limits"]
        assert [(row["group"], row["running"], row["waiting"], row["of"], row["limit"]) for row in rows] == [
            ("kind noop", 1, 1, "work", 1),
            ("pool gpu", 0, 0, "work", 3),
        ]
        explained = await served.json("GET", f"/api/executions/{second}/explain")
        assert "the server's limit of 1 work items of the kind `noop` at once" in explained["standing"][0]["waits_for"]
        line = await served.json("GET", f"/api/executions/{second}/line")
        assert (line["work"][0]["limits"], line["full"]) == (["kind noop"], {"kind noop": 1})


async def test_a_worker_is_shown_with_what_it_holds(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await hello(served)
        assert (await served.json("GET", "/api/workers/w"))["holds"] == []
        started = await served.start(ONE)
        (lease,) = (await served.json("POST", "/api/worker/claim", {"id": "1", "worker": "w"}))["leases"]
        found = await served.json("GET", "/api/workers/w")
        assert (found["worker_id"], found["status"]) == ("w", "ready")
        held = {"execution_id": started, "run": lease["work"]["run_id"], "attempt": 1, "lease_until": lease["until"]}
        assert found["holds"] == [held]


async def test_a_worker_is_shown_with_what_it_finished_lately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with in_process(tmp_path) as served:
        for name in ("w", "other"):
            await hello(served, name)
            await served.json("POST", "/api/workers", {"worker_id": name, "capacity": 1}, status=201)
        started = await served.start(TWO)
        (first,) = (await served.json("POST", "/api/worker/claim", {"id": "c", "worker": "w"}))["leases"]
        assert (await served.json("GET", "/api/workers/w/finished"))["runs"] == []
        await served.json("POST", "/api/worker/report", report(first))
        (run,) = (await served.json("GET", "/api/workers/w/finished"))["runs"]
        assert (run["execution_id"], run["run"], run["state"]) == (started, "one#1", "done")
        assert run["started_at"] <= run["ended_at"]
        assert run["path"] == (await served.json("GET", f"/api/executions/{started}"))["path"]
        assert (await served.json("GET", "/api/workers/other/finished"))["runs"] == []
        monkeypatch.setattr(finished, "LOOKED", 1)
        assert (await served.json("GET", "/api/workers/w/finished"))["runs"] == []  # its start is further back
        await served.json("GET", "/api/workers/nobody/finished", status=404)
