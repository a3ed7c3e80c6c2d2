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
