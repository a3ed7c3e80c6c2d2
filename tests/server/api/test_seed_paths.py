"""Older paths and words mean what the worker's protocol means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from noetl.settings import ServerSettings
from tests.server.api.test_worker import report
from tests.server.serving import ONE, TWO, Served, bearer, in_process, playbook, secret

pytestmark = pytest.mark.asyncio
LOOP = playbook(
    "  - step: each\n    loop: {in: [1, 2], iterator: n, spec: {mode: parallel}}\n    tool: {kind: noop}\n", "each"
)


async def leased(served: Served, worker: str = "w", **more: Any) -> Any:
    return (await served.json("POST", "/queue/lease", {"worker_id": worker, "lease_seconds": 60, **more}))["job"]


def event(job: Any, kind: str, **more: Any) -> dict[str, Any]:
    """An event as an older worker sends it."""
    status = {"action_started": "RUNNING", "action_completed": "COMPLETED"}.get(kind, "FAILED")
    said = {"execution_id": job["execution_id"], "event_type": kind, "status": status, "node_id": job["node_id"]}
    return said | {"node_name": job["node_name"], "node_type": "task"} | more


async def types(served: Served, execution_id: str) -> list[str]:
    found = await served.json("GET", f"/api/executions/{execution_id}/events")
    return [one["event_type"] for one in found["events"]]


@pytest.mark.parametrize("named", ["playbook_id", "playbook_path", "path"])
@pytest.mark.parametrize("given", ["payload", "parameters", "input_payload", "context"])
async def test_an_execution_is_started_in_the_older_words(tmp_path: Path, named: str, given: str) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        path = await served.register(ONE)
        body = {named: path, given: {"n": 4}, "version": "latest"}
        started = await served.json("POST", "/api/executions/execute", body, 201)
        assert (await served.until(started["execution_id"], "completed"))["result"] == 4


async def test_a_worker_that_knows_only_the_older_words_runs_a_playbook(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        assert await leased(served) is None
        started = await served.start(TWO)
        for number, step in enumerate(("one", "two")):
            job = await leased(served)
            assert (job["execution_id"], job["node_name"], job["status"], job["attempts"]) == (
                started,
                step,
                "leased",
                1,
            )
            action = json.loads(job["action"])
            assert (action["step"], action["tool"][0][f"{step}_task"]["kind"]) == (step, "noop")
            body = {
                "execution_id": started,
                "template": {"id": "{{ execution_id }}", "no": "{{ no.such }}"},
                "strict": False,
            }
            assert (await served.json("POST", "/context/render", body))["result"] == {"id": started, "no": None}
            assert (await served.json("POST", "/events", event(job, "action_started")))["status"] == "applied"
            beat = {"worker_id": "w", "extend_seconds": 120}
            assert await served.json("POST", f"/api/queue/{quote(job['id'])}/heartbeat", beat) == {"type": "stop"}
            done = event(job, "action_completed", result={"n": number}, event_id=f"e{number}")
            assert (await served.json("POST", "/events", done))["status"] == "applied"
        found = await served.until(started, "completed")
        assert found["result"] == {"n": 1}
        assert (await types(served, started)).count("step.started") == 2


async def test_an_event_that_is_sent_again_is_applied_once(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        started = await served.start(TWO)
        job = await leased(served)
        done = event(job, "action_completed", result=1, event_id=77, worker_id="w", epoch=job["epoch"])
        assert (await served.json("POST", "/events", done))["status"] == "applied"
        assert (await served.json("POST", "/events", done))["status"] == "duplicate"
        late = {**done, "event_id": 78}
        assert (await served.json("POST", "/events", late))["status"] == "late"
        assert (await types(served, started)).count("step.done") == 1


async def test_an_error_fails_the_step(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for error, message in (
            ("it broke", "it broke"),
            ({"message": "so it is", "kind": "parse"}, "so it is"),
            (None, "failed"),
        ):
            started = await served.start(ONE)
            job = await leased(served)
            await served.json("POST", "/events", event(job, "action_error", error=error))
            found = await served.until(started, "failed")
            assert message in str(found["error"])


async def test_what_cannot_be_taken_is_told(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await served.start(ONE)
        job = await leased(served)
        for sent, status, where in (
            (event(job, "execution_completed"), 422, "$.event_type"),
            (event({**job, "node_id": "1:x#1"}, "action_completed"), 409, "$.node_id"),
            ({"event_type": "action_completed"}, 422, "$.node_id"),
            ({}, 422, "$.event_type"),
            (event(job, "action_completed", worker_id="other"), 409, None),
        ):
            told = await served.json("POST", "/events", sent, status)
            assert told.get("where") == where
        await served.start(LOOP)
        each = await leased(served)
        told = await served.json("POST", "/events", event(each, "action_completed", index=-1), 422)
        assert told["where"] == "$.index"


LONG = playbook(
    "  - step: each\n    loop: {in: [5, 6, 7, 8], iterator: n, mode: parallel, spec: {policy: {exec: local}}}\n"
    "    tool: {kind: noop}\n",
    "long",
)


async def test_the_items_of_a_range_are_reported_one_by_one(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        started = await served.start(LONG)
        job = await leased(served)
        assert [one["index"] for one in job["loop_items"]] == [0, 1, 2, 3]
        assert [one["item"] for one in job["loop_items"]] == [5, 6, 7, 8]
        assert job["loop_items"][2]["context"]["n"] == job["loop_items"][2]["context"]["iter"]["n"] == 7
        assert job["loop_items"][2]["context"]["iter"]["index"] == 2
        loop = {"loop_id": f"{started}:each", "current_index": 0, "current_item": 5}
        assert (job["context"]["n"], job["context"]["_loop"]) == (5, loop)
        assert (await served.json("POST", "/events", event(job, "action_started")))["status"] == "applied"
        ways: tuple[dict[str, Any], ...] = (
            {"index": 2},
            {"context": {"_loop": {"current_index": 0}}},
            {"meta": {"index": 3}},
            {"metadata": {"current_index": 1}},
        )
        for way, result in zip(ways, (70, 50, 80, 60), strict=True):
            done = event(job, "action_completed", result=result, **way)
            assert (await served.json("POST", "/events", done))["status"] == "applied"
        found = await served.until(started, "completed")
        assert found["result"]["results"] == [50, 60, 70, 80]
        assert (await types(served, started)).count("loop.iteration.started") == 1


async def test_a_range_is_reported_at_once(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        started = await served.start(LONG)
        job = await leased(served)
        for wrong in (None, 7, [1], [1, 2, 3, 4, 5]):
            told = await served.json("POST", "/events", event(job, "action_completed", result=wrong), 422)
            assert told["where"] == "$.result"
        done = event(job, "action_completed", result=[1, {"n": 2}, None, [4]], event_id="all")
        assert (await served.json("POST", "/events", done))["status"] == "applied"
        assert (await served.json("POST", "/events", done))["status"] == "duplicate"
        found = await served.until(started, "completed")
        assert found["result"]["results"] == [1, {"n": 2}, None, [4]]


async def test_what_is_left_of_a_range_is_leased_again_and_reported_at_once(tmp_path: Path) -> None:
    async with in_process(tmp_path, lease_ms=300) as served:
        started = await served.start(LONG)
        job = await leased(served, lease_seconds=1)
        await served.json("POST", "/events", event(job, "action_completed", result="b", index=1))
        again = None
        while again is None:  # until the first lease has run out
            again = await leased(served, "other")
        assert [one["index"] for one in again["loop_items"]] == [0, 2, 3]
        await served.json(
            "POST", "/events", event(again, "action_completed", result=["a", "c", "d"], worker_id="other")
        )
        assert (await served.until(started, "completed"))["result"]["results"] == ["a", "b", "c", "d"]


async def test_an_item_or_a_whole_range_may_fail(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for more, index in (({"index": 2}, 2), ({}, 0)):
            started = await served.start(LONG)
            job = await leased(served)
            await served.json("POST", "/events", event(job, "action_error", error="it broke", **more))
            found = await served.until(started, "failed")
            assert f"item {index} of the loop failed: it broke" in str(found["error"])


async def test_the_frames_of_a_session_are_taken_too(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        started = await served.start(ONE)
        (lease,) = (await served.json("POST", "/queue/lease", {"worker_id": "w"}))["leases"]
        place = quote(lease["work"]["work_id"])
        beat = {"worker_id": "w", "epoch": lease["epoch"]}
        assert await served.json("POST", f"/api/queue/{place}/heartbeat", beat) == {"type": "stop"}
        lost = await served.json("POST", f"/api/queue/{place}/heartbeat", {**beat, "epoch": 99_999})
        assert lost["work"] == [lease["work"]["work_id"]]
        await served.json("POST", "/events", {"type": "report", **report(lease)})
        assert (await served.until(started, "completed"))["result"] == 7


async def test_a_lease_lasts_as_long_as_was_asked_for(tmp_path: Path) -> None:
    async with in_process(tmp_path, lease_ms=5_000) as served:
        await served.start(ONE)
        job = await leased(served, lease_seconds=600)
        now = served.services.clock.now()
        assert await served.services.store.expired(now + 500_000, 5) == []
        await served.json(
            "POST", f"/api/queue/{quote(job['id'])}/heartbeat", {"worker_id": "w", "extend_seconds": 3_600}
        )
        assert await served.services.store.expired(now + 3_000_000, 5) == []
        assert len(await served.services.store.expired(now + 4_000_000, 5)) == 1


async def test_nobody_reports_on_the_work_of_another_token(tmp_path: Path) -> None:
    named = (("root", "admin"), ("one", "worker"), ("two", "worker"))
    secrets = [bearer(await secret(tmp_path, role, name)) for name, role in named]
    async with in_process(tmp_path, ServerSettings(auth="token")) as served:
        served.http.headers.update(secrets[0])
        await served.start(ONE)
        answer = await served.http.post("/queue/lease", json={"worker_id": "same"}, headers=secrets[1])
        job = answer.json()["job"]
        await served.http.post("/queue/lease", json={"worker_id": "same"}, headers=secrets[2])
        for sent in (
            event(job, "action_completed"),
            event(job, "action_completed", worker_id="same"),
        ):
            assert (await served.http.post("/events", json=sent, headers=secrets[2])).status_code == 409
        forged = event(job, "action_completed", worker_id="same", epoch=job["epoch"])
        assert (await served.http.post("/events", json=forged, headers=secrets[2])).json()["status"] == "late"
        beat = await served.http.post(
            f"/api/queue/{quote(job['id'])}/heartbeat", json={"worker_id": "same"}, headers=secrets[2]
        )
        assert beat.json()["work"] == [job["id"]]
        mine = await served.http.post("/events", json=event(job, "action_completed"), headers=secrets[1])
        assert mine.json()["status"] == "applied"
