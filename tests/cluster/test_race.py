"""Requests to two servers for one execution at the same time take effect once.

The worker of these tests is spoken by hand and has a pool of its own; it claims at one server and reports at the other.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.acceptance.run import noetl
from tests.cluster.cluster import Cluster
from tests.cluster.ledger import Ledger
from tests.cluster.load import Load, loading, told, until

pytestmark = pytest.mark.asyncio
often = pytest.mark.parametrize("many", [6, pytest.param(12, marks=pytest.mark.chaos)])
_HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {{name: {0}, path: faults/{0}}}\nworkflow:\n"
BY_HAND = _HEAD.format("by_hand") + (
    "  - {step: one, spec: {pool: race}, tool: {kind: noop}, next: two}\n"
    "  - {step: two, spec: {pool: race}, tool: {kind: noop}}\n"
)
ASKS = _HEAD.format("asks") + (
    "  - {step: ask, tool: {kind: wait, signal: go}, next: then}\n  - {step: then, tool: {kind: noop}}\n"
)
NAPS = _HEAD.format("naps") + (
    "  - {step: nap, tool: {kind: sleep, seconds: 1}, next: then}\n  - {step: then, tool: {kind: noop}}\n"
)


class Both:
    """The two servers, asked at the same time."""

    def __init__(self, http: httpx.AsyncClient, servers: tuple[str, ...]) -> None:
        self._http = http
        self.servers = servers

    async def one(self, number: int, path: str, body: Any, key: str = "") -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        return await self._http.post(self.servers[number % 2] + path, json=body, headers=headers)

    async def all(self, path: str, body: Any, key: str = "", times: int = 4) -> list[httpx.Response]:
        """Ask both, each several times, all at once."""
        return list(await asyncio.gather(*(self.one(number, path, body, key) for number in range(times))))

    async def hello(self, worker: str) -> None:
        for number in range(2):
            body = {"worker": worker, "pools": ["race"], "acks": False}
            assert (await self.one(number, "/api/worker/hello", body)).is_success

    async def claim(self, number: int, worker: str, most: int = 1, wait_s: float = 10.0) -> list[dict[str, Any]]:
        body = {"id": uuid4().hex, "worker": worker, "most": most, "wait_s": wait_s}
        answer = await self.one(number, "/api/worker/claim", body)
        assert answer.is_success, answer.text
        return list(answer.json().get("leases", ()))


def done(worker: str, lease: dict[str, Any], want: int = 0) -> dict[str, Any]:
    """The last report of a lease."""
    work, epoch = lease["work"], lease["epoch"]
    name = f"{work['work_id']}@{epoch}.1"
    report = {"type": "Report", "message_id": name, "run_id": work["run_id"], "epoch": epoch, "worker": worker}
    report["ending"] = {"status": "ok", "result": 1}
    return {"id": name, "worker": worker, "execution_id": work["execution_id"], "report": report, "want": want}


@asynccontextmanager
async def racing(system: Cluster, book: Ledger) -> AsyncIterator[tuple[Load, Both]]:
    with told(system, 0):
        async with loading(system, book) as load, httpx.AsyncClient(timeout=60, verify=False) as http:
            await load.register(BY_HAND, ASKS, NAPS)
            yield load, Both(http, system.servers)
            await load.hold()


async def counted(load: Load, execution_id: str) -> Counter[str]:
    return Counter(event.event_type for event in await load.clients[0].events(execution_id))


@often
async def test_work_is_claimed_at_one_server_and_reported_at_the_other(
    shaken: Cluster, book: Ledger, many: int
) -> None:
    async with racing(shaken, book) as (load, both):
        await both.hello("racer")
        started = [await load.other("by_hand") for _ in range(many)]
        open_steps, turn, statuses = 2 * many, 0, Counter[str]()
        while open_steps:
            leases = await both.claim(turn, "racer", most=5)
            for lease in leases:
                report = done("racer", lease)
                answers = await asyncio.gather(
                    *(both.one(turn + 1 + again, "/api/worker/report", report) for again in range(3))
                )
                assert all(answer.is_success for answer in answers), [answer.text for answer in answers]
                statuses.update(answer.json().get("status", "applied") for answer in answers)
            open_steps -= len(leases)
            turn += 1
        assert statuses == {"applied": 2 * many, "duplicate": 4 * many}
        assert set((await load.ended(*started)).values()) == {"completed"}
        for one in started:
            found = await counted(load, one)
            assert (found["step.done"], found["report.late"]) == (2, 0)


@often
async def test_a_lease_that_ran_out_is_taken_back_once(shaken: Cluster, book: Ledger, many: int) -> None:
    async with racing(shaken, book) as (load, both):
        await both.hello("silent")
        started = [await load.other("by_hand") for _ in range(many)]
        lost = [lease for number in range(2) for lease in await both.claim(number, "silent", most=many // 2)]
        assert len(lost) == many
        await load.until_nothing_is_leased_by("silent")
        await both.hello("racer")
        seen = Counter[int]()
        for number in range(2 * many):
            [lease] = await both.claim(number, "racer")
            seen[lease["attempt"]] += 1
            assert (await both.one(number, "/api/worker/report", done("racer", lease))).is_success
        assert seen == {1: many, 2: many}  # the first steps were handed out twice, the second ones once
        for lease in lost:
            answer = await both.one(0, "/api/worker/report", done("silent", lease))
            assert answer.json()["status"] == "late"
        assert set((await load.ended(*started)).values()) == {"completed"}
        for one in started:
            found = await counted(load, one)
            assert (found["step.done"], found["report.late"]) == (2, 1)


@often
async def test_one_key_starts_one_execution_and_sends_one_signal(shaken: Cluster, book: Ledger, many: int) -> None:
    async with racing(shaken, book) as (load, both):
        for number in range(many):
            key = f"race-{number}-{book.url}"
            answers = await both.all("/api/execute", {"path": "faults/asks"}, key)
            assert all(answer.is_success for answer in answers), [answer.text for answer in answers]
            [started] = {answer.json()["execution_id"] for answer in answers}
            load.others[started] = key
            await load.until_event([started], "step.suspended")
            answers = await both.all(f"/api/executions/{started}/signal", {"name": "go", "data": 1}, key)
            assert {answer.status_code for answer in answers} <= {200, 409}, [answer.text for answer in answers]
            assert await load.ended(started) == {started: "completed"}
            found = await counted(load, started)
            assert (found["playbook.started"], found["signal.received"], found["step.done"]) == (1, 1, 2)


@often
async def test_steering_at_both_servers_at_once(shaken: Cluster, book: Ledger, many: int) -> None:
    async with racing(shaken, book) as (load, both):
        for _ in range(many // 2):
            started = await load.other("asks")
            await load.until_event([started], "step.suspended")
            place = f"/api/executions/{started}"
            paused, resumed = await both.all(f"{place}/pause", {}), await both.all(f"{place}/resume", {})
            assert all(answer.is_success for answer in (*paused, *resumed))
            await asyncio.gather(
                both.all(f"{place}/pause", {}),
                both.all(f"{place}/resume", {}),
                both.all(f"{place}/cancel", {"reason": "enough"}),
                both.all(f"{place}/signal", {"name": "go"}),
            )
            assert (await load.ended(started))[started] in ("cancelled", "completed")
            found = await counted(load, started)
            assert found["playbook.finished"] == 1
            assert found["execution.cancelled"] <= 1
            assert found["playbook.paused"] >= 1


@often
async def test_a_timer_that_is_due_at_both_servers_fires_once(shaken: Cluster, book: Ledger, many: int) -> None:
    async with racing(shaken, book) as (load, _):
        started = [await load.other("naps") for _ in range(2 * many)]
        assert set((await load.ended(*started)).values()) == {"completed"}
        for one in started:
            found = await counted(load, one)
            assert (found["timer.set"], found["timer.fired"], found["step.done"]) == (1, 1, 2)
        assert await until(lambda: load.leased_by("worker-0"), lambda leased: not leased, "quiet") == []


async def test_an_operator_finds_nothing_wrong_after_all_that(shaken: Cluster) -> None:
    """Whatever the tests before this one did to the cluster."""
    for words in (["db", "check", "--deep", "--db"], ["admin", "rebuild", "--check", "--store"]):
        ran = await asyncio.to_thread(noetl, *words, shaken.database, cwd=shaken.folder)
        assert ran.code == 0, ran
