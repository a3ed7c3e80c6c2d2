"""Many executions by one request: checked together, once per key, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from noetl.model.errors import StoreUnavailable
from noetl.settings import ServerSettings
from tests.databases import fresh_database
from tests.server.serving import FAILS, ONE, PATIENCE_S, WAITS, Served, bearer, in_process, playbook, process, secret

pytestmark = pytest.mark.asyncio
PLACE = "/api/execute/many"
STRICT = ONE.replace(
    "workload:", 'executor: {spec: {workload_schema: {"properties": {"n": {"type": "integer"}}}}}\nworkload:'
)
PICKY = playbook("  - step: one\n    tool: {kind: noop}\n", "picky", workload={"n": "{{ 1 // 0 }}"})


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"database": fresh_database("many")} if request.param == "postgres" else {}


@asynccontextmanager
async def server(folder: Path, store: dict[str, Any]) -> AsyncIterator[Served]:
    async with in_process(folder, **store) as served, served.embedded.run_worker(""):
        yield served


async def ids(served: Served) -> list[str]:
    found = await served.json("GET", "/api/executions?limit=1000")
    return [row["execution_id"] for row in found["executions"]]


def several(count: int) -> list[dict[str, Any]]:
    return [{"n": number} for number in range(count)]


async def test_a_list_is_started_in_order_and_waited_for(tmp_path: Path, store: dict[str, Any]) -> None:
    async with server(tmp_path, store) as served:
        path = await served.register(ONE)
        asked = {"path": path, "payloads": several(40), "wait_ms": 30_000, "tags": ["t"], "priority": 3}
        told = await served.json("POST", PLACE, asked, 201)
        assert told["counts"] == {"completed": 40}
        assert [one["result"] for one in told["executions"]] == list(range(40))
        assert {one["path"] for one in told["executions"]} == {path}
        for one in told["executions"][::13]:
            row = await served.json("GET", f"/api/executions/{one['execution_id']}")
            assert (row["ended_at"], row["tags"], row["error"]) == (one["ended_at"], ["t"], None)
        assert len(await ids(served)) == 40


async def test_the_ends_are_told_as_they_are(tmp_path: Path, store: dict[str, Any]) -> None:
    content = FAILS.replace("ctx.n | default(0)", "workload.n")
    async with server(tmp_path, store) as served:
        asked = {"content": content, "payloads": [{"n": 1}, {"n": 0}, {"n": 2}], "wait_ms": 30_000}
        told = await served.json("POST", PLACE, asked, 201)
        assert [one["status"] for one in told["executions"]] == ["completed", "failed", "completed"]
        assert told["counts"] == {"completed": 2, "failed": 1}
        failed = await served.json("GET", f"/api/executions/{told['executions'][1]['execution_id']}")
        assert told["executions"][1]["error"] == failed["error"]


async def test_what_does_not_end_in_time_is_told_as_it_stands(tmp_path: Path) -> None:
    async with server(tmp_path, {}) as served:
        path = await served.register(WAITS)
        told = await served.json("POST", PLACE, {"path": path, "payloads": several(3), "wait_ms": 300}, 201)
        assert told["counts"] == {"waiting": 3}
        assert [one["ended_at"] for one in told["executions"]] == [None] * 3
        asking = asyncio.create_task(
            served.json("POST", PLACE, {"path": path, "payloads": several(2), "wait_ms": 30_000}, 201)
        )
        while len(started := await ids(served)) < 5:
            await asyncio.sleep(0.02)
        for one in started[:2]:
            assert not asking.done()
            await served.until(one, "waiting")
            await served.json("POST", f"/api/executions/{one}/signal", {"name": "go", "data": one})
        assert (await asking)["counts"] == {"completed": 2}


async def test_a_thousand_are_started_by_few_transactions(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        path, log, commits = await served.register(WAITS), served.services.store, list[int]()
        commit = log.commit

        async def counted(made: Any, *more: Any) -> Any:
            commits.append(len(made))
            return await commit(made, *more)

        log.commit = counted  # type: ignore[assignment]
        told = await served.json("POST", PLACE, {"path": path, "payloads": several(1_000)}, 201)
        assert len({one["execution_id"] for one in told["executions"]}) == 1_000
        assert sum(commits) >= 1_000
        assert len(commits) <= 50  # each takes what came during the one before, which is up to the machine
        found = await served.json("GET", f"/api/executions/{told['executions'][777]['execution_id']}")
        assert found["workload"] == {"n": 777}


async def test_each_start_has_its_entry_in_the_audit_trail(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        path = await served.register(WAITS)
        told = await served.json("POST", PLACE, {"path": path, "payloads": several(3)}, 201)
        entries = await served.services.team.audited(limit=3)
        assert [one.entity for one in reversed(entries)] == [one["execution_id"] for one in told["executions"]]
        assert {(one.action, one.detail["path"]) for one in entries} == {("execution.start", path)}


@pytest.mark.parametrize(
    ("body", "status", "where"),
    [
        ({"path": "test/one"}, 422, "$"),
        ({"path": "test/one", "payloads": []}, 422, "$.payloads"),
        ({"path": "test/one", "payloads": [{}] * 1_001}, 422, "$.payloads"),
        ({"path": "test/one", "payloads": {}}, 422, "$.payloads"),
        ({"path": "test/one", "payloads": [{}, {}, [], {}]}, 422, "$.payloads[2]"),
        ({"path": "test/one", "payloads": [{}], "payload": {}}, 422, "$"),
        ({"path": "test/one", "payloads": [{}], "wait_ms": 30_001}, 422, "$.wait_ms"),
        ({"payloads": [{}]}, 422, "$"),
        ({"path": "no/such", "payloads": [{}]}, 404, None),
        ({"path": "test/one", "version": 9, "payloads": [{}]}, 404, None),
        ({"playbook": "0" * 64, "payloads": [{}]}, 400, None),
        ({"content": "a: [", "payloads": [{}]}, 422, "$.content, line 1"),
        ({"path": "test/one", "payloads": [{}], "parent": "x"}, 404, None),
        ({"path": "test/one", "payloads": [*[{"n": 1}] * 70, {"n": "x"}, {"n": "y"}]}, 422, "$.payloads[70]"),
        ({"path": "test/picky", "payloads": [{"n": 1}, {"m": 2}]}, 422, "$.payloads[1]"),
    ],
)
async def test_a_bad_list_is_told_where_and_why_and_starts_nothing(
    tmp_path: Path, body: Any, status: int, where: str | None
) -> None:
    async with in_process(tmp_path) as served:
        for content in (STRICT, PICKY):
            await served.register(content)
        told = await served.json("POST", PLACE, body, status, headers={"Idempotency-Key": "k"})
        assert told.get("where") == where, told
        assert told["detail"]
        assert await ids(served) == []
        good = {"path": "test/picky", "payloads": [{"n": 1}]}  # the key is not spent
        await served.json("POST", PLACE, good, 201, headers={"Idempotency-Key": "k"})
        await served.json("POST", PLACE, good, 400, headers={"Idempotency-Key": "k" * 201})


async def test_a_playbook_that_nobody_registered_needs_an_editor(tmp_path: Path) -> None:
    secrets = {role: await secret(tmp_path, role) for role in ("operator", "editor")}
    async with in_process(tmp_path, ServerSettings(auth="token")) as served:
        for role, status in (("operator", 403), ("editor", 201)):
            asked = {"content": WAITS, "payloads": [{}]}
            await served.json("POST", PLACE, asked, status, headers=bearer(secrets[role]))


async def test_the_same_key_starts_a_list_once_also_at_the_same_time(tmp_path: Path, store: dict[str, Any]) -> None:
    async with server(tmp_path, store) as served:
        path, key = await served.register(WAITS), {"Idempotency-Key": "abc"}
        asked = {"path": path, "payloads": several(30)}
        told = await asyncio.gather(*(served.json("POST", PLACE, asked, 201, headers=key) for _ in range(6)))
        lists = [[one["execution_id"] for one in answer["executions"]] for answer in told]
        assert all(one == lists[0] for one in lists)
        assert sorted(await ids(served)) == sorted(lists[0])
        again = await served.json("POST", PLACE, {**asked, "wait_ms": 50}, 201, headers=key)
        assert [one["execution_id"] for one in again["executions"]] == lists[0]
        assert all(one["repeated"] for one in again["executions"])
        for number, one in enumerate(lists[0]):
            assert (await served.json("GET", f"/api/executions/{one}"))["workload"] == {"n": number}


async def test_the_same_key_starts_a_list_once_at_two_servers(tmp_path: Path, store: dict[str, Any]) -> None:
    async with in_process(tmp_path, **store) as one, in_process(tmp_path, **store) as two:
        path = await one.register(WAITS)
        for number in range(5):
            key = {"Idempotency-Key": f"k{number}"}
            asked = {"path": path, "payloads": several(10)}
            both = [served.json("POST", PLACE, asked, 201, headers=key) for served in (one, two)]
            first, second = await asyncio.gather(*both)
            assert [row["execution_id"] for row in first["executions"]] == [
                row["execution_id"] for row in second["executions"]
            ]
        assert len(await ids(one)) == 50


async def test_other_payloads_with_the_same_key_start_nothing(tmp_path: Path, store: dict[str, Any]) -> None:
    async with server(tmp_path, store) as served:
        path, other = await served.register(WAITS), await served.register(ONE)
        lists = [several(5), several(4), several(6), [{"n": 9}, *several(5)[1:]]]
        bodies = [{"path": path, "payloads": one} for one in lists] + [{"path": other, "payloads": lists[0]}]
        answers = await asyncio.gather(
            *(served.http.post(PLACE, json=body, headers={"Idempotency-Key": "k"}) for body in bodies)
        )
        assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]
        [won] = [answer.json() for answer in answers if answer.status_code == 201]
        assert sorted(await ids(served)) == sorted(one["execution_id"] for one in won["executions"])
        refused = next(answer.json() for answer in answers if answer.status_code == 409)
        assert (refused["type"], refused["where"]) == ("about:blank#key-reused", "header Idempotency-Key")


async def test_a_list_that_was_cut_off_is_finished_by_the_same_request(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        path, key = await served.register(WAITS), {"Idempotency-Key": "k"}
        sequencer = served.services.control.sequencer
        submit_all = sequencer.submit_all

        async def halfway(sent: Any) -> Any:
            told = await submit_all(sent[:4])
            return [*told, *[StoreUnavailable("it went away") for _ in sent[4:]]]

        sequencer.submit_all = halfway  # type: ignore[assignment]
        asked = {"path": path, "payloads": several(10)}
        told = await served.json("POST", PLACE, asked, 503, headers=key)
        assert told["detail"].startswith("4 of 10 executions have started")
        assert "Idempotency-Key" in told["fix"]
        first = await ids(served)
        assert len(first) == 4
        sequencer.submit_all = submit_all  # type: ignore[method-assign]
        told = await served.json("POST", PLACE, asked, 201, headers=key)
        assert [one["repeated"] for one in told["executions"]] == [True] * 4 + [False] * 6
        assert {one["execution_id"] for one in told["executions"][:4]} == set(first)
        assert len(await ids(served)) == 10


async def test_a_list_whose_server_is_killed_in_the_middle_is_started_once(tmp_path: Path) -> None:
    """The same request at the next server returns every execution, and none twice."""
    key, asked = {"Idempotency-Key": "k"}, {"path": "test/waits", "payloads": several(1_000)}
    for patience in (0.02, 0.1, 0.3, None):
        with process(tmp_path, "serve", "--store", "noetl.db") as (url, server):
            async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as client:
                await client.post("/api/catalog", json={"content": WAITS})
                asking = asyncio.create_task(client.post(PLACE, json=asked, headers=key))
                await asyncio.wait([asking], timeout=patience)
                if patience is not None:
                    server.kill()
                    await asyncio.gather(asking, return_exceptions=True)
                    continue
                told = (await asking).json()["executions"]
                page = (await client.get("/api/executions?limit=1000")).json()["executions"]
                assert len({one["execution_id"] for one in told}) == len(page) == 1_000
                assert {one["execution_id"] for one in page} == {one["execution_id"] for one in told}
                row = (await client.get(f"/api/executions/{told[700]['execution_id']}")).json()
                assert row["workload"] == {"n": 700}


REJECTS = {"spec": {"concurrency": {"key": "k", "limit": 2, "on_limit": "reject"}}}


async def test_those_beyond_a_limit_that_rejects_are_told_and_the_others_run(
    tmp_path: Path, store: dict[str, Any]
) -> None:
    content = playbook("  - {step: ask, tool: {kind: wait, signal: go}}\n", "limited", executor=REJECTS)
    async with server(tmp_path, store) as served:
        path, key = await served.register(content), {"Idempotency-Key": "k"}
        asked = {"path": path, "payloads": several(5)}
        told = await served.json("POST", PLACE, asked, 201, headers=key)
        assert told["counts"]["rejected"] == 3
        begun = [one["execution_id"] for one in told["executions"] if one["status"] != "rejected"]
        assert sorted(await ids(served)) == sorted(begun)
        for one in told["executions"]:
            if one["status"] == "rejected":
                assert (one["execution_id"], one["error"]["code"]) == ("", "LIMIT_REACHED")
                assert "2 executions with the concurrency key 'k' run already" in one["error"]["message"]
        refused = await served.json("POST", PLACE, {**asked, "wait_ms": 30_000}, 409)
        assert refused["type"].endswith("#limit-reached")
        for one in begun:
            await served.json("POST", f"/api/executions/{one}/signal", {"name": "go"})
            await served.until(one, "completed")
        again = await served.json("POST", PLACE, asked, 201, headers=key)
        assert again["counts"]["rejected"] == 1
        assert [one["repeated"] for one in again["executions"]] == [
            one["status"] != "rejected" for one in told["executions"]
        ]


async def test_a_list_is_not_waited_for_where_a_limit_rejects(tmp_path: Path) -> None:
    content = playbook("  - {step: one, tool: {kind: sleep, seconds: 0.3}}\n", "limited", executor=REJECTS)
    async with server(tmp_path, {}) as served:
        asked = {"path": await served.register(content), "payloads": several(4), "wait_ms": 30_000}
        told = await asyncio.wait_for(served.json("POST", PLACE, asked, 201), 20)
        assert told["counts"] == {"completed": 2, "rejected": 2}
        assert served.services.control.completion._waiting == {}


async def test_one_that_was_deleted_is_started_anew_and_the_others_stay(tmp_path: Path) -> None:
    async with server(tmp_path, {}) as served:
        path, key = await served.register(ONE), {"Idempotency-Key": "k"}
        asked = {"path": path, "payloads": several(3), "wait_ms": 30_000}
        first = [one["execution_id"] for one in (await served.json("POST", PLACE, asked, headers=key))["executions"]]
        await served.json("DELETE", f"/api/executions/{first[1]}", status=200)
        told = (await served.json("POST", PLACE, asked, 201, headers=key))["executions"]
        assert [one["repeated"] for one in told] == [True, False, True]
        assert [one["result"] for one in told] == [0, 1, 2]
        assert [told[0]["execution_id"], told[2]["execution_id"]] == [first[0], first[2]]


async def test_a_list_is_refused_whole_where_there_is_no_room(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        path, admission = await served.register(WAITS), served.services.control.sequencer._admission
        admission._places, admission._timeout_s = 0, 0.05
        told = await served.json("POST", PLACE, {"path": path, "payloads": several(10)}, 429)
        assert told["retry_after_s"]
        assert await ids(served) == []
        admission._places = 100
        await served.json("POST", PLACE, {"path": path, "payloads": several(10)}, 201)
        assert len(await ids(served)) == 10
