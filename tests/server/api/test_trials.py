"""Trials of a text: what runs, what is taken from a history, who may."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from noetl.settings import ServerSettings
from tests.server.serving import Served, bearer, in_process, playbook, secret

pytestmark = pytest.mark.asyncio
TEXT = playbook(
    "  - step: a\n    tool: {kind: noop, result: {v: '{{ workload.n }}'}}\n    next: b\n"
    "  - step: b\n    tool: {kind: noop, result: {v: '{{ a.v + 1 }}'}}\n    next: c\n"
    "  - step: c\n    tool: {kind: noop, result: {v: '{{ b.v * 10 }}'}}\n",
    "trial",
    workload={"n": 1},
)
BETTER = TEXT.replace("a.v + 1", "a.v + 2")


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with in_process(tmp_path) as one, one.embedded.run_worker(""):
        yield one


async def tried(served: Served, content: str, **more: Any) -> tuple[dict[str, Any], list[str]]:
    """Run a trial; return its answer and the steps that have run since it began."""
    told = await served.json("POST", "/api/try", {"content": content, **more}, 201)
    await served.until(told["execution_id"], "completed", "failed")
    address = f"/api/executions/{told['execution_id']}/events?type=step.done&after={told['seq']}"
    events = (await served.json("GET", address))["events"]
    return told, [event["entity_id"] for event in events]


async def result(served: Served, execution_id: str) -> Any:
    return (await served.json("GET", f"/api/executions/{execution_id}"))["result"]


async def test_a_trial_runs_a_text_and_is_listed_under_its_tag_only(served: Served) -> None:
    told, ran = await tried(served, TEXT, payload={"n": 4})
    assert ran == ["a", "b", "c"]
    assert [(task["step"], task["kind"]) for task in told["tasks"]] == [("a", "noop"), ("b", "noop"), ("c", "noop")]
    assert (await served.json("GET", "/api/executions"))["executions"] == []
    (row,) = (await served.json("GET", "/api/executions?tag=try"))["executions"]
    assert (row["execution_id"], row["tags"]) == (told["execution_id"], ["try"])


async def test_a_trial_stops_behind_a_step_or_runs_it_alone(served: Served) -> None:
    assert (await tried(served, TEXT, until="b"))[1] == ["a", "b"]
    assert (await tried(served, TEXT, step="a"))[1] == ["a"]


async def test_recorded_outputs_are_not_made_again(served: Served) -> None:
    source = await served.start(TEXT, payload={"n": 5})
    await served.until(source, "completed")
    told, ran = await tried(served, BETTER, **{"from": source})
    assert (told["source"], ran) == (source, ["b", "c"])
    assert [task["step"] for task in told["tasks"]] == ["b", "c"]
    assert await result(served, told["execution_id"]) == {"v": 70}
    told, ran = await tried(served, BETTER, step="c", **{"from": source})
    assert ran == ["c"]
    assert await result(served, told["execution_id"]) == {"v": 60}  # on the recorded output of b
    told, ran = await tried(served, BETTER, until="b", **{"from": source})
    assert ran == ["b"]


async def test_a_change_of_the_first_step_runs_all_on_the_recorded_workload(served: Served) -> None:
    source = await served.start(TEXT, payload={"n": 5})
    await served.until(source, "completed")
    told, ran = await tried(served, TEXT.replace("workload.n", "workload.n + 0"), **{"from": source})
    assert ran == ["a", "b", "c"]
    assert await result(served, told["execution_id"]) == {"v": 60}


async def test_what_cannot_be_tried_is_refused(served: Served) -> None:
    source = await served.start(TEXT)
    await served.until(source, "completed")
    for body, status, said in (
        ({"step": "a", "until": "b"}, 422, "`step` or `until`"),
        ({"step": "nope"}, 422, "no step `nope`"),
        ({"from": source}, 409, "has changed"),
        ({"from": source, "content": TEXT.replace("test/trial", "test/other")}, 409, "not of `test/other`"),
        ({"from": "12345"}, 404, "12345"),
        ({"content": "workflow: ["}, 422, "errors"),
    ):
        told = await served.json("POST", "/api/try", {"content": TEXT, **body}, status)
        assert said in told["detail"], told


async def test_a_dry_run_names_the_tasks_and_starts_nothing(served: Served) -> None:
    told = await served.json("POST", "/api/try", {"content": TEXT, "until": "b", "dry_run": True}, 201)
    assert (told["execution_id"], [task["step"] for task in told["tasks"]]) == (None, ["a", "b"])
    assert (await served.json("GET", "/api/executions?tag=try"))["executions"] == []


async def test_an_operator_tries_what_is_registered_and_an_editor_any_text(tmp_path: Path) -> None:
    operator, editor = [bearer(await secret(tmp_path, role, role)) for role in ("operator", "editor")]
    async with in_process(tmp_path, ServerSettings(auth="token")) as served:
        await served.json("POST", "/api/catalog", {"content": TEXT}, headers=editor)
        await served.json("POST", "/api/try", {"content": TEXT, "until": "b"}, 201, headers=operator)
        await served.json("POST", "/api/try", {"content": BETTER}, 403, headers=operator)
        await served.json("POST", "/api/try", {"content": BETTER}, 201, headers=editor)
