"""Log records of OpenTelemetry, posted to a real HTTP server."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from aiohttp import web

from noetl.model.events import Event
from noetl.observe.export.otlp_logs import OtlpLogs
from noetl.observe.export.target import Exported, ExportError
from tests.receiver import receiver

pytestmark = pytest.mark.asyncio
AT = 1_767_268_800_123


def event(event_type: str = "step.done", **more: Any) -> Exported:
    return Exported.of(Event("e.1", "7", 4, event_type, AT, **more), "a/b")


def plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in attributes}


async def test_events_become_log_records() -> None:
    failed = event("step.failed", step_run_id="fetch#1", duration_ms=1.5, payload={"error": {"message": "gone"}})
    async with receiver() as server:
        target = OtlpLogs(f"{server.url}/v1/logs", {"Authorization": "Bearer abc"})
        await target.prepare()
        await target.send([event(), failed], "b", is_repeat=False)
        await target.close()
    (posted,) = server.posted
    assert (posted.path, posted.headers["Authorization"]) == ("/v1/logs", "Bearer abc")
    (resource,) = posted.body["resourceLogs"]
    assert plain(resource["resource"]["attributes"])["service.name"] == "noetl"
    good, bad = resource["scopeLogs"][0]["logRecords"]
    assert (good["timeUnixNano"], good["severityText"], good["eventName"]) == (f"{AT}000000", "INFO", "step.done")
    assert (bad["severityNumber"], bad["body"]["stringValue"]) == (17, '{"error":{"message":"gone"}}')
    found = plain(bad["attributes"])
    assert (found["execution_id"], found["workflow_ref"], found["step_id"]) == ("7", "a/b", "fetch")
    assert (found["seq"], found["duration_ms"], found["error"]) == ("4", 1.5, "gone")
    assert "loop_index" not in found


async def test_what_the_collector_rejects_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with receiver() as server:
        server.answers = [
            web.json_response({"partialSuccess": {"rejectedLogRecords": "1", "errorMessage": "too old"}}),
            web.Response(text="taken"),
        ]
        target = OtlpLogs(server.url)
        with caplog.at_level(logging.WARNING):
            await target.send([event()], "b", is_repeat=False)
            await target.send([event()], "b", is_repeat=False)
        await target.close()
    (record,) = caplog.records
    assert "rejected 1 log records: too old" in record.message


async def test_a_collector_that_refuses_or_is_gone_fails_the_export() -> None:
    async with receiver() as server:
        server.answers = [web.Response(status=503, text="busy")]
        target = OtlpLogs(server.url)
        with pytest.raises(ExportError, match="answered 503: busy"):
            await target.send([event()], "b", is_repeat=False)
    with pytest.raises(ExportError):
        await target.send([event()], "b", is_repeat=False)
    await target.close()
