"""ClickHouse's engine takes the table and the rows; each event is there once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from noetl.model.errors import InvalidInput
from noetl.model.events import Event
from noetl.observe.export.clickhouse import COLUMNS, TABLE, ClickHouse
from noetl.observe.export.target import Exported, ExportError
from noetl.settings import ExportSettings
from tests.clickhouse import clickhouse, is_there
from tests.server.serving import FAILS, in_process

pytestmark = [
    pytest.mark.skipif(not is_there(), reason="no ClickHouse here: scripts/clickhouse.sh loads its engine"),
    pytest.mark.asyncio,
]
AT = 1_767_225_600_123


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with clickhouse(tmp_path_factory.mktemp("clickhouse")) as url:
        yield url


def asked(server: str, query: str) -> list[dict[str, Any]]:
    """Return the rows that a query finds."""
    user = httpx.URL(server).userinfo.decode().partition(":")
    headers = {"X-ClickHouse-User": user[0], "X-ClickHouse-Key": user[2]}
    url = str(httpx.URL(server).copy_with(userinfo=b""))
    answer = httpx.post(url, content=query + " FORMAT JSONEachRow", headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def event(number: int, execution_id: str = "7", **more: Any) -> Exported:
    return Exported.of(Event(f"e.{number}", execution_id, number, "step.done", AT + number, **more), "a/b")


async def test_the_table_is_made_once_and_has_every_column(server: str) -> None:
    target = ClickHouse(server, "made.events")
    await target.prepare()
    await target.prepare()
    found = asked(server, "SELECT name, type FROM system.columns WHERE database = 'made' AND table = 'events'")
    assert [(row["name"], row["type"]) for row in found] == [
        (name, kind.partition(" CODEC")[0]) for name, kind in COLUMNS
    ]
    indexes = asked(server, "SELECT expr FROM system.data_skipping_indices WHERE database = 'made'")
    assert {row["expr"] for row in indexes} == {"EventId", "EventType", "Status", "Timestamp"}
    (key,) = asked(server, "SELECT sorting_key FROM system.tables WHERE database = 'made'")
    assert key["sorting_key"] == "ExecutionId, Seq, EventId"
    await target.close()


async def test_a_row_has_what_the_event_has(server: str) -> None:
    error = {"kind": "http", "message": "it's\n'gone' \\ 無", "retryable": True}
    payload = {"error": error, "big": 2**60}
    one = event(3, step_run_id="fetch#1", status="error", duration_ms=12.5, payload=payload)
    failed = Exported.of(replace(one.event, event_type="step.failed"), "a/b")
    target = ClickHouse(server, "rows.events")
    await target.prepare()
    await target.send([failed], "b", is_repeat=False)
    (row,) = asked(server, "SELECT *, toUnixTimestamp64Milli(Timestamp) AS at FROM rows.events")
    assert (row["EventId"], row["ExecutionId"], row["EventType"], row["EventName"]) == (
        "e.3",
        "7",
        "step.failed",
        "StepFailed",
    )
    assert (row["Status"], row["StepName"], row["WorkflowRef"]) == ("FAILED", "fetch", "a/b")
    assert (row["DurationMs"], row["ErrorClass"], row["ErrorMessage"]) == (12.5, "RetryableError", error["message"])
    assert json.loads(row["Payload"]) == payload
    assert (int(row["at"]), row["Iteration"], row["StepRunId"]) == (AT + 3, None, "fetch#1")
    await target.close()


async def test_a_repeated_batch_adds_only_what_is_missing(server: str) -> None:
    target = ClickHouse(server, "once.events")
    await target.prepare()
    odd = event(1, "it's")
    await target.send([odd, *(event(number) for number in range(2, 1_500))], "b", is_repeat=True)
    await target.send([odd, *(event(number) for number in range(2, 2_600))], "b", is_repeat=True)
    (row,) = asked(server, "SELECT count() AS all, uniqExact(EventId) AS ids FROM once.events")
    assert (int(row["all"]), int(row["ids"])) == (2_599, 2_599)
    await target.close()


async def test_what_two_servers_insert_at_once_is_read_once(server: str) -> None:
    target = ClickHouse(server, "final.events")
    await target.prepare()
    for _ in range(2):
        await target.send([event(1), event(2)], "b", is_repeat=False)
    (row,) = asked(server, "SELECT count() AS all FROM final.events FINAL")
    assert int(row["all"]) == 2
    await target.close()


async def test_a_refusal_says_why_and_shows_no_password(server: str) -> None:
    wrong = server.replace("canary-password", "canary-wrong")
    target = ClickHouse(wrong)
    with pytest.raises(ExportError, match=r"403: Code: 516") as refused:
        await target.prepare()
    assert "canary" not in str(refused.value)
    await target.close()
    unmade = ClickHouse(server, "nowhere.events")
    with pytest.raises(ExportError, match="404"):
        await unmade.send([event(1)], "b", is_repeat=False)
    await unmade.close()


async def test_a_name_that_is_no_table_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"DATABASE\.TABLE"):
        ClickHouse("http://127.0.0.1:1", "a.b; DROP TABLE c")


async def test_a_server_exports_what_runs_on_it(server: str, tmp_path: Path) -> None:
    export = ExportSettings(clickhouse_url=server)
    async with in_process(tmp_path, export=export) as served, served.embedded.run_worker(""):
        found = await served.start(FAILS, payload={"n": 0})
        await served.until(found, "failed")
        logged = [event.event_id for event in await served.services.store.read(found)]
        query = f"SELECT EventId, EventType, Status, StepName, ErrorClass FROM {TABLE} WHERE ExecutionId = '{found}' ORDER BY Seq"
        async with asyncio.timeout(60):
            while True:
                page = (await served.http.get("/metrics")).text
                if f'noetl_export_events_total{{target="clickhouse"}} {float(len(logged))}' in page:
                    break
                await asyncio.sleep(0.1)
        rows = asked(server, query)
        assert [row["EventId"] for row in rows] == logged
        (broken,) = (row for row in rows if row["EventType"] == "step.failed")
        assert (broken["Status"], broken["StepName"], broken["ErrorClass"]) == ("FAILED", "bad", "FatalError")
        assert 'noetl_export_lag_seconds{target="clickhouse"} 0.0' in (await served.http.get("/metrics")).text
