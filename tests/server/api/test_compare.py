"""Two executions side by side over the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noetl.settings import ServerSettings
from tests.server.serving import Served, bearer, in_process, playbook, secret

pytestmark = pytest.mark.asyncio

BRANCH = playbook(
    """\
  - step: a
    tool: {kind: noop}
    next: {arcs: [{step: b, when: '{{ workload.n > 1 }}'}, {step: c, when: '{{ workload.password != 3 }}'}]}
  - step: b
    tool: {kind: python, code: 'result = 1 // int(n)', input: {n: 0}}
  - step: c
    tool: {kind: noop}
""",
    "branch",
    workload={"n": 1, "password": "hunter-one", "list": "short"},
)


async def ended(served: Served, content: str, status: str, **payload: Any) -> str:
    started = await served.start(content, payload=payload)
    await served.until(started, status)
    return started


async def test_a_failed_execution_is_compared_with_the_last_good_one(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        await ended(served, BRANCH, "completed")
        good = await ended(served, BRANCH, "completed", password="hunter-two")
        changed = BRANCH.replace("{kind: noop}\n", "{kind: noop, result: 7}\n", 1)
        bad = await ended(served, changed, "failed", n=5, list="x" * 5_000)
        await ended(served, BRANCH, "completed")  # after it, so it is not the last good one
        found = await served.json("GET", f"/api/executions/{bad}/compare")
        assert (found["this"]["execution_id"], found["this"]["status"], found["this"]["version"]) == (bad, "failed", 2)
        assert (found["other"]["execution_id"], found["other"]["version"]) == (good, 1)
        assert found["this"]["duration_ms"] == found["this"]["ended_at"] - found["this"]["started_at"]
        assert found["playbook"]["differs"]
        assert "+    tool: {kind: noop, result: 7}" in found["playbook"]["text"]
        changes = {one["path"]: (one["before"], one["after"]) for one in found["workload"]}
        assert changes["n"] == (1, 5)
        assert changes["list"] == ("short", {"cut": '"' + "x" * 199, "bytes": 5_002})
        assert changes["password"] == ("(masked secret)", "(masked secret)")
        steps = {one["step"]: (one["this"]["state"], one["other"]["state"], one["differs"]) for one in found["steps"]}
        assert steps == {"a": ("done", "done", False), "b": ("failed", "", True), "c": ("", "done", True)}
        assert [(one["source"], one["arc"], one["this"]["taken"]) for one in found["arcs"]] == [
            ("a", 0, 1),
            ("a", 1, 0),
        ]
        split = found["split"]
        assert (split["step"], split["arc"], split["this"]["run"]) == ("a", 0, "a#1")
        assert split["this"]["arcs"][0]["read"] == {"workload.n": 5}
        assert [one["read"] for one in split["other"]["arcs"]] == [
            {"workload.n": 1},
            {"workload.password": "(secret)"},
        ]


async def test_an_execution_can_be_compared_with_any_other(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        first = await ended(served, BRANCH, "completed")
        second = await ended(served, BRANCH, "completed")
        found = await served.json("GET", f"/api/executions/{first}/compare", params={"with": second})
        assert found["playbook"] == {"differs": False, "text": None, "left_out": 0}
        assert (found["workload"], found["arcs"], found["split"], found["left_out"]) == ([], [], None, {})
        same = await served.json("GET", f"/api/executions/{first}/compare", params={"with": first})
        assert not any(one["differs"] for one in same["steps"])
        none = await served.json("GET", f"/api/executions/{first}/compare?with=last-good", status=404)
        assert none["detail"] == f"No execution of `test/branch` before {first} has completed."
        for unknown in ("123456789", "nonsense"):
            await served.json("GET", f"/api/executions/{first}/compare", params={"with": unknown}, status=404)


async def test_both_executions_must_be_within_reach(tmp_path: Path) -> None:
    ours = bearer(await secret(tmp_path, "editor", "ours", namespaces=["test/"]))
    theirs = bearer(await secret(tmp_path, "editor", "theirs", namespaces=["other/"]))
    async with in_process(tmp_path, ServerSettings(auth="token")) as served:
        ids = []
        for headers, content in ((ours, BRANCH), (theirs, BRANCH.replace("path: test/", "path: other/"))):
            path = (await served.json("POST", "/api/catalog", {"content": content}, headers=headers))["path"]
            found = await served.json("POST", "/api/execute", {"path": path}, headers=headers)
            ids.append(found["execution_id"])
        for one, two in (ids, ids[::-1]):
            refused = await served.json(
                "GET", f"/api/executions/{one}/compare", params={"with": two}, headers=ours, status=404
            )
            assert refused["type"] == "about:blank#unknown-execution"
