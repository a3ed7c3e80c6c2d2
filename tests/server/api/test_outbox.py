"""The outbox over HTTP: roles, retries and discards; and a server's relay."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from noetl.ports.outbox import OutboxMessage
from tests.server.serving import PATIENCE_S, Served, in_process, playbook
from tests.tools.web import Web

pytestmark = pytest.mark.asyncio
FAR = 2**50


async def put(served: Served, key: str = "k", **more: Any) -> int:
    return await served.services.outbox.put(OutboxMessage(key, **{"available_at": FAR, **more}), 100)


async def until(served: Served, number: int, state: str) -> dict[str, Any]:
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while (found := await served.json("GET", f"/api/outbox/{number}"))["state"] != state:
        assert asyncio.get_running_loop().time() < end, found
        await asyncio.sleep(0.02)
    return dict(found)


async def test_messages_are_listed_and_shown(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        one = await put(served, "a", topic="t", payload={"secretish": 1}, headers={"X": "y"})
        two = await put(served, "b")
        listed = await served.json("GET", "/api/outbox")
        assert [row["number"] for row in listed["messages"]] == [two, one]
        assert (listed["pending"], listed["dead"]) == (2, 0)
        assert all(row["payload"] is None for row in listed["messages"])
        shown = await served.json("GET", f"/api/outbox/{one}")
        assert (shown["payload"], shown["headers"], shown["topic"]) == ({"secretish": 1}, {"X": "y"}, "t")
        page = await served.json("GET", f"/api/outbox?before={two}&state=pending&limit=1")
        assert [row["number"] for row in page["messages"]] == [one]
        await served.json("GET", "/api/outbox?state=nowhere", status=422)
        for odd in ("9999", "x", "0", "-1", "1" * 400, "%C2%B2"):
            await served.json("GET", f"/api/outbox/{odd}", status=404)


async def test_a_person_retries_and_discards(tmp_path: Path, web: Web) -> None:
    async with in_process(tmp_path) as served:
        one, two = await put(served, "a", address=f"{web.url}/json"), await put(served, "b")
        await served.json("POST", f"/api/outbox/{one}/retry", {})
        found = await until(served, one, "delivered")
        assert found["delivered_at"] >= 100
        await served.json("POST", f"/api/outbox/{one}/retry", {}, status=404)
        await served.json("POST", f"/api/outbox/{two}/discard", {}, status=422)
        await served.json("POST", f"/api/outbox/{two}/discard", {"reason": "no longer true"})
        assert (await until(served, two, "discarded"))["error"] == "no longer true"
        assert [asked.headers["idempotency-key"] for asked in web.asked] == ["a"]


async def test_a_task_puts_a_message_and_the_server_delivers_it(tmp_path: Path, web: Web) -> None:
    tool = f"{{kind: outbox, topic: orders, url: '{web.url}/json', headers: {{X-A: b}}, payload: {{id: '{{{{ workload.n }}}}'}}}}"
    content = playbook(f"  - step: tell\n    tool: {tool}\n", "tells", workload={"n": 7})
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(content)
        ended = await served.until(started, "completed", "failed")
        assert ended["status"] == "completed", ended
        [row] = (await served.json("GET", "/api/outbox"))["messages"]
        assert row["key"] == f"{started}:tell:tell_task:outbox:orders"
        await until(served, row["number"], "delivered")
        [asked] = web.asked
        assert (asked.method, asked.path, asked.body) == ("POST", "/json", b'{"id":7}')
        assert (asked.headers["x-a"], asked.headers["x-noetl-topic"]) == ("b", "orders")
        assert asked.headers["idempotency-key"] == row["key"]
        metrics = (await served.http.get("/metrics")).text
        assert 'noetl_outbox_attempts_total{ok="true",target="http"} 1.0' in metrics
        assert 'noetl_outbox_messages{state="pending"} 0.0' in metrics


async def test_a_credential_is_used_and_never_written_down(tmp_path: Path, web: Web) -> None:
    tool = f"{{kind: outbox, topic: t, auth: api, url: '{web.url}/json', payload: {{a: 1}}}}"
    spilled = "{kind: outbox, topic: t, url: 'http://127.0.0.1:1/', payload: {k: '{{ keychain.api.token }}'}}"
    workflow = f"  - step: one\n    tool: {tool}\n    next: two\n  - step: two\n    tool: {spilled}\n"
    content = playbook(workflow, "tells", keychain=[{"name": "api", "kind": "stored"}])
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        await served.json("PUT", "/api/credentials/api", {"data": {"token": "hush-hush-hush"}})
        started = await served.start(content)
        ended = await served.until(started, "completed", "failed")
        assert ended["status"] == "failed", ended
        [row] = (await served.json("GET", "/api/outbox"))["messages"]
        await until(served, row["number"], "delivered")
        assert web.asked[0].headers["authorization"] == "Bearer hush-hush-hush"
    assert b"hush-hush-hush" not in (tmp_path / "noetl.db").read_bytes()


async def test_a_worker_puts_messages_only_for_work_that_it_holds(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await served.json("POST", "/api/worker/hello", {"worker": "w", "acks": False})
        started = await served.start(playbook("  - step: one\n    tool: {kind: noop}\n", "one"))
        claimed = await served.json("POST", "/api/worker/claim", {"id": "c", "worker": "w"})
        (lease,) = claimed["leases"]
        held = [lease["work"]["work_id"], lease["epoch"]]
        body = {"work": held, "worker": "w", "key": f"{started}:one:t", "available_at": FAR}
        first = await served.json("POST", "/api/worker/outbox", body)
        assert await served.json("POST", "/api/worker/outbox", body) == first
        await served.json("POST", "/api/worker/outbox", {**body, "key": "9:other:t"}, status=422)
        await served.json("POST", "/api/worker/outbox", {**body, "work": [held[0], held[1] + 1]}, status=403)
        [row] = (await served.json("GET", "/api/outbox"))["messages"]
        assert row["execution_id"] == started


async def test_two_servers_deliver_each_message_once(tmp_path: Path, web: Web) -> None:
    async with in_process(tmp_path) as one, in_process(tmp_path):
        numbers = [await put(one, f"k{index}", address=f"{web.url}/json", available_at=0) for index in range(50)]
        for number in numbers:
            await until(one, number, "delivered")
        assert sorted(asked.headers["idempotency-key"] for asked in web.asked) == sorted(f"k{n}" for n in range(50))


async def test_a_message_without_a_place_to_go_is_dead_and_says_why(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        nowhere = await put(served, "a", topic="t", available_at=0)
        unknown = await put(served, "b", target="pigeon", available_at=0)
        assert "NOETL_OUTBOX_URL" in (await until(served, nowhere, "dead"))["error"]
        assert "`pigeon`; known: http" in (await until(served, unknown, "dead"))["error"]
