"""Dry runs of actions, and actions on many executions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noetl.settings import ServerSettings
from tests.server.serving import FAILS, ONE, WAITS, Served, bearer, in_process, playbook, secret

pytestmark = pytest.mark.asyncio

SAGA = playbook(
    "  - {step: book, tool: {kind: noop}, compensate: unbook, next: ask}\n"
    "  - {step: ask, tool: {kind: wait, signal: go}}\n  - {step: unbook, tool: {kind: noop}}\n",
    "saga",
)


async def actions(served: Served) -> list[str]:
    return [row["action"] for row in (await served.json("GET", "/api/audit"))["entries"]]


async def test_a_dry_run_says_what_would_happen_and_changes_nothing(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        saga, fails = await served.start(SAGA), await served.start(FAILS)
        before = await served.until(saga, "waiting")
        await served.until(fails, "failed")
        noted = await actions(served)
        told = await served.json("POST", f"/api/executions/{saga}/cancel", {"compensate": True, "dry_run": True})
        assert (told["preview"]["ends"], told["preview"]["undoes"]) == (["ask#1"], ["book"])
        assert told["preview"]["says"] == "Ends 1 step-run: ask#1, then undoes book, newest first."
        forced = f"/api/admin/executions/{saga}/steps/ask/force-complete"
        told = await served.json("POST", forced, {"result": 1, "dry_run": True})
        assert told["preview"]["ends"] == ["ask#1"]
        told = await served.json("POST", f"/api/executions/{fails}/retry", {"dry_run": True})
        assert (told["execution_id"], told["preview"]["steps"]) == ("", ["bad"])
        told = await served.json("POST", f"/api/executions/{fails}/fork", {"start": "first", "dry_run": True})
        assert told["preview"]["steps"] == ["first", "bad"]
        await served.json("POST", f"/api/executions/{fails}/fork", {"start": "none", "dry_run": True}, 400)
        await served.json("POST", f"/api/executions/{fails}/cancel", {"dry_run": True}, 409)
        assert (await served.json("GET", f"/api/executions/{saga}"))["last_seq"] == before["last_seq"]
        assert len((await served.json("GET", "/api/executions"))["executions"]) == 2
        assert await actions(served) == noted


async def test_many_are_cancelled_by_a_query_or_by_ids(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        waiting = [await served.start(WAITS) for _ in range(3)]
        one = await served.start(ONE)
        await served.until(one, "completed")
        for name in waiting:
            await served.until(name, "waiting")

        async def cancel(**body: Any) -> Any:
            return await served.json("POST", "/api/executions/cancel", body)

        dry = await cancel(query={"path": "test/*", "status": ["waiting"]}, dry_run=True)
        assert (dry["count"], dry["by_status"], dry["dry_run"], dry["is_whole"]) == (3, {"waiting": 3}, True, True)
        told = await cancel(ids=[waiting[0], one, "17"], reason="no")
        assert (told["executions"], [row["execution_id"] for row in told["refused"]]) == ([waiting[0]], [one, "17"])
        assert "ended with status completed" in told["refused"][0]["reason"]
        told = await cancel(ids=["no number", "\x00"])
        assert (told["count"], [row["execution_id"] for row in told["refused"]]) == (0, ["no number", "\x00"])
        await cancel(query={"needs_signal": True})
        for name in waiting:
            await served.until(name, "cancelled")
        assert (await actions(served)).count("execution.cancel") == 3
        await served.json("POST", "/api/executions/cancel", {}, 422)


async def test_many_are_retried_from_their_failed_steps(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        failed = [await served.start(FAILS) for _ in range(2)]
        for name in failed:
            await served.until(name, "failed")
        body = {"query": {"status": ["failed"]}}
        dry = await served.json("POST", "/api/executions/retry", {**body, "dry_run": True})
        assert (dry["count"], dry["started"]) == (2, [])
        told = await served.json("POST", "/api/executions/retry", body)
        assert (told["count"], len(told["started"])) == (2, 2)
        for name in told["started"]:
            await served.until(name, "failed")


async def test_executions_of_other_namespaces_are_not_changed(tmp_path: Path) -> None:
    theirs = bearer(await secret(tmp_path, "operator", "theirs", namespaces=["other/"]))
    ours = bearer(await secret(tmp_path, "editor", "ours", namespaces=["test/"]))
    async with in_process(tmp_path, ServerSettings(auth="token")) as served:
        await served.json("POST", "/api/catalog", {"content": WAITS}, headers=ours)
        started = await served.json("POST", "/api/execute", {"path": "test/waits"}, headers=ours)
        bodies: list[dict[str, Any]] = [{"ids": [started["execution_id"]]}, {"query": {}}]
        for body in bodies:
            told = await served.json("POST", "/api/executions/cancel", body, headers=theirs)
            assert told["count"] == 0
        told = await served.json("POST", "/api/executions/cancel", {"query": {}}, headers=ours)
        assert told["count"] == 1
