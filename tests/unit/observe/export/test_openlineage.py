"""Run events of OpenLineage: executions and their step-runs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from aiohttp import web

from noetl.model.events import Event
from noetl.observe.export.openlineage import OpenLineage, run_event, run_id
from noetl.observe.export.target import Exported, ExportError
from tests.receiver import receiver

pytestmark = pytest.mark.asyncio


def event(event_type: str, execution_id: str = "7", **more: Any) -> Exported:
    return Exported.of(Event("e.1", execution_id, 1, event_type, 1_767_268_800_123, **more), "etl/load")


@pytest.mark.parametrize(
    ("event_type", "status", "expected"),
    [
        ("playbook.started", None, "START"),
        ("playbook.finished", "completed", "COMPLETE"),
        ("playbook.finished", "partial", "COMPLETE"),
        ("playbook.finished", "failed", "FAIL"),
        ("playbook.finished", "cancelled", "ABORT"),
        ("step.started", None, "START"),
        ("step.done", "ok", "COMPLETE"),
        ("step.failed", "error", "FAIL"),
    ],
)
async def test_the_state_of_a_run_is_that_of_the_event(event_type: str, status: str | None, expected: str) -> None:
    assert run_event(event(event_type, status=status), "n")["eventType"] == expected


async def test_a_step_run_names_the_execution_as_its_parent() -> None:
    error = {"error": {"kind": "http", "message": "gone"}}
    whole = run_event(event("playbook.started"), "n")
    step = run_event(event("step.failed", step_run_id="fetch#2", payload=error), "n")
    assert (whole["job"]["namespace"], whole["job"]["name"]) == ("n", "etl/load")
    assert step["job"]["name"] == "etl/load.fetch"
    parent = step["run"]["facets"]["parent"]
    assert (parent["run"]["runId"], parent["job"]["name"]) == (whole["run"]["runId"], "etl/load")
    assert step["run"]["facets"]["errorMessage"]["message"] == "gone"
    assert step["eventTime"] == "2026-01-01T12:00:00.123+00:00"
    assert UUID(step["run"]["runId"]) == UUID(run_id("7", "fetch#2")) != UUID(whole["run"]["runId"])


async def test_the_events_of_an_execution_are_posted_in_order() -> None:
    kinds = ("playbook.started", "step.started", "token.created", "step.done", "playbook.finished")
    batch = [event(kind, number) for kind in kinds for number in ("7", "8")]
    async with receiver() as server:
        target = OpenLineage(server.url, "n", {"X-Api-Key": "abc"})
        await target.send(batch, "b", is_repeat=True)
        await target.close()
    assert {(one.path, one.headers["X-Api-Key"]) for one in server.posted} == {("/api/v1/lineage", "abc")}
    for execution in ("7", "8"):
        mine = [
            one.body["eventType"]
            for one in server.posted
            if run_id(execution)
            in (one.body["run"]["runId"], one.body["run"]["facets"].get("parent", {}).get("run", {}).get("runId"))
            or one.body["run"]["runId"] == run_id(execution, "")
        ]
        assert mine[0] == "START"
        assert mine[-1] == "COMPLETE"
    assert len(server.posted) == 8


async def test_a_server_that_refuses_fails_the_batch() -> None:
    async with receiver() as server:
        server.answers = [web.Response(status=422, text="no such namespace")]
        target = OpenLineage(server.url)
        with pytest.raises(ExceptionGroup) as failed:
            await target.send([event("playbook.started")], "b", is_repeat=False)
        assert isinstance(failed.value.exceptions[0], ExportError)
        await target.close()
