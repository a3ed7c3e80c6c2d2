"""Ends of executions start others on a server, by the triggers of playbooks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.server.serving import FAILS, PATIENCE_S, in_process, playbook

pytestmark = pytest.mark.asyncio
AFTER = {
    "ended": "failures",
    "path": "test/f*",
    "status": ["failed"],
    "payload": {"which": "{{ execution.execution_id }}", "why": "{{ execution.error.message | upper }}"},
}
WORKFLOW = "  - step: one\n    tool: {kind: noop, result: '{{ workload.which }}'}\n"


async def test_a_registered_playbook_starts_after_the_end_it_watches(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        path = await served.register(playbook(WORKFLOW, "after", triggers=[AFTER]))
        failed = await served.start(FAILS)
        found: list[dict[str, Any]] = []
        end = asyncio.get_running_loop().time() + PATIENCE_S
        while not found:
            assert asyncio.get_running_loop().time() < end
            await asyncio.sleep(0.05)
            tag = "ended:test:after:failures"
            found = (await served.json("GET", f"/api/executions?tag={tag}"))["executions"]
        [started] = found
        assert started["path"] == path
        assert (await served.until(started["execution_id"], "completed"))["result"] == failed
        [first] = await served.services.store.read(started["execution_id"], 0, 1)
        assert "ZERO" in first.payload["payload"]["why"]
        await served.register(playbook(WORKFLOW, "after"))
        assert await served.services.triggers.triggers("ended") == []


async def test_a_trigger_is_made_paused_resumed_and_deleted(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        path = await served.register(playbook(WORKFLOW, "after"))
        asked = {"name": "t", "path": path, "after": "test/f*", "status": ["failed", "failed"], "tags": ["nightly"]}
        made = await served.json("POST", "/api/triggers", asked, 201)
        assert (made["after"], made["status"], made["tags"], made["paused"]) == (
            "test/f*", ["failed"], ["nightly"], False,
        )  # fmt: skip
        await served.json("POST", "/api/triggers", asked, 409)
        assert (await served.json("POST", "/api/triggers/t/pause"))["paused"] is True
        assert (await served.json("GET", "/api/triggers/t"))["paused"] is True
        assert (await served.json("POST", "/api/triggers/t/resume"))["paused"] is False
        assert [one["trigger_id"] for one in (await served.json("GET", "/api/triggers"))["triggers"]] == ["t"]
        await served.json("DELETE", "/api/triggers/t")
        for method, verb in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume")):
            await served.json(method, f"/api/triggers/t{verb}", None, 404)


async def test_a_trigger_that_cannot_work_is_refused(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        path = await served.register(playbook(WORKFLOW, "after"))
        asked = {"name": "t", "path": path, "after": "other"}
        for change, status, where in (
            ({"after": "test/*"}, 422, "$.after"),
            ({"payload": {"x": "{{ workload.x }}"}}, 422, "$.payload.x"),
            ({"status": ["running"]}, 422, "$.status[0]"),
            ({"name": "a b"}, 422, "$.name"),
            ({"path": "test/aftr"}, 404, None),
            ({"version": 7}, 404, None),
        ):
            refused = await served.json("POST", "/api/triggers", {**asked, **change}, status)
            assert refused.get("where") == where


async def test_a_trigger_of_a_playbook_is_paused_and_not_deleted(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        text = playbook(WORKFLOW, "after", triggers=[AFTER])
        await served.register(text)
        name = "test:after:failures"
        refused = await served.json("DELETE", f"/api/triggers/{name}", None, 409)
        assert "pause the trigger" in refused["fix"]
        assert (await served.json("POST", f"/api/triggers/{name}/pause"))["owner"] == "test/after"
        await served.register(text.replace("f*", "g*"))  # a new version keeps the pause
        found = await served.json("GET", f"/api/triggers/{name}")
        assert (found["paused"], found["after"]) == (True, "test/g*")
