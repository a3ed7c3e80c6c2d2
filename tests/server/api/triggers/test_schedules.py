"""Schedules over HTTP: made, changed, paused, explained; and a server that fires."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from noetl.settings import ServerSettings
from tests.server.serving import ONE, PATIENCE_S, Served, bearer, in_process, playbook, secret

pytestmark = pytest.mark.asyncio
STRICT = playbook(
    "  - step: one\n    tool: {kind: noop}\n",
    "strict",
    executor={"spec": {"workload_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}},
)
DAY = 86_400_000


async def made(served: Served, content: str = ONE, **more: Any) -> dict[str, Any]:
    path = await served.register(content)
    body = {"name": "s", "path": path, "cron": "30 2 * * *", "timezone": "Europe/Vienna", **more}
    return dict(await served.json("POST", "/api/schedules", body, status=201))


async def overdue(served: Served, days: int) -> None:
    """Act as if the schedule had last been looked at some days ago."""
    found = await served.services.schedules.schedule("s")
    assert found is not None
    assert found.next_at is not None
    assert await served.services.schedules.save(replace(found, next_at=found.next_at - days * DAY))


async def test_a_schedule_is_made_listed_and_shown(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        row = await made(served, jitter="5m", payload={"n": 2})
        now = served.services.clock.civil()
        assert now < row["next_at"] <= row["start_at"] < row["next_at"] + 300_000
        assert (row["cron"], row["catch_up"], row["overlap"], row["paused"]) == ("30 2 * * *", "skip", "skip", False)
        assert await served.json("GET", "/api/schedules/s") == row
        assert await served.json("GET", "/api/schedules?path=test/one") == {"schedules": [row], "next": None}
        assert (await served.json("GET", "/api/schedules?path=other"))["schedules"] == []
        page = await served.json("GET", "/api/schedules?limit=1")
        assert page["next"] == "s"
        assert (await served.json("GET", "/api/schedules?cursor=s"))["schedules"] == []


async def test_the_next_times_are_shown_over_a_change_of_the_clocks(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await made(served)
        found = await served.json("GET", "/api/schedules/s/next?count=2&after=1774652400000")
        assert [run["local"] for run in found["runs"]] == ["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00"]
        await served.json("GET", "/api/schedules/s/next?count=101", status=422)


@pytest.mark.parametrize(
    ("fields", "status", "where", "text"),
    [
        ({"cron": "61 * * * *"}, 422, "$.cron", "bad minute"),
        ({"cron": None}, 422, "$.cron", "has no time"),
        ({"every": "5m"}, 422, "$.every", "exclude each other"),
        ({"timezone": "Mars"}, 422, "$.timezone", "'Mars' is no time zone"),
        ({"cron": None, "calendar": {"dates": ["x"]}}, 422, "$.calendar.dates", "'x' is no day"),
        ({"overlap": "maybe"}, 422, "$.overlap", "maybe"),
        ({"name": "a/b"}, 422, "$.name", ""),
        ({"often": True}, 422, "$", "often"),
        ({"path": "test/strct"}, 404, None, "Did you mean"),
        ({"version": 9}, 404, None, "version 9"),
        ({"payload": {"n": "many"}}, 422, "$.payload", "n"),
    ],
)
async def test_a_mistake_is_refused_with_its_place(
    tmp_path: Path, fields: dict[str, Any], status: int, where: str | None, text: str
) -> None:
    async with in_process(tmp_path) as served:
        path = await served.register(STRICT)
        body = {"name": "s", "path": path, "cron": "@daily", **fields}
        problem = await served.json("POST", "/api/schedules", body, status=status)
        assert text in problem["detail"]
        assert where is None or problem["where"] == where
        assert (await served.json("GET", "/api/schedules"))["schedules"] == []


async def test_a_name_is_taken_once(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await made(served)
        body = {"name": "s", "path": "test/one", "every": 60}
        assert "There is a schedule" in (await served.json("POST", "/api/schedules", body, status=409))["detail"]


async def test_a_change_computes_the_next_time_anew(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await made(served, overlap="queue")
        row = await served.json("PATCH", "/api/schedules/s", {"every": "1h", "version": 1})
        assert (row["cron"], row["every"], row["version"], row["overlap"]) == (None, "1h", 1, "queue")
        assert 0 < row["next_at"] - served.services.clock.civil() <= 3_600_000
        await served.json("PATCH", "/api/schedules/s", {"cron": "x"}, status=422)
        await served.json("PATCH", "/api/schedules/s", {"version": 7}, status=404)
        assert await served.json("GET", "/api/schedules/s") == row
        await served.json("PATCH", "/api/schedules/none", {}, status=404)


async def test_a_pause_skips_and_says_so(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await made(served)
        row = await served.json("POST", "/api/schedules/s/pause")
        assert row["paused"]
        await overdue(served, 3)
        found = await served.json("POST", "/api/schedules/s/resume")
        assert not found["paused"]
        assert found["next_at"] == row["next_at"]
        [firing] = (await served.json("GET", "/api/schedules/s/firings"))["firings"]
        assert (firing["state"], firing["reason"], firing["count"]) == ("skipped", "paused", 3)
        assert firing["execution_id"] == ""
        again = await served.json("POST", "/api/schedules/s/resume")
        assert again["next_at"] == row["next_at"]
        assert len((await served.json("GET", "/api/schedules/s/firings"))["firings"]) == 1


async def test_a_schedule_is_deleted(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await made(served)
        assert await served.json("DELETE", "/api/schedules/s") == {"removed": 1}
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("GET", "/next"), ("GET", "/firings")):
            assert "No schedule s" in (await served.json(method, f"/api/schedules/s{path}", status=404))["detail"]


async def test_viewers_read_and_operators_change(tmp_path: Path) -> None:
    tokens = {role: bearer(await secret(tmp_path, role)) for role in ("viewer", "operator", "editor")}
    async with in_process(tmp_path, ServerSettings(auth="token")) as served:
        await served.json("POST", "/api/catalog", {"content": ONE}, headers=tokens["editor"])
        body = {"name": "s", "path": "test/one", "every": "1h"}
        await served.json("POST", "/api/schedules", body, status=403, headers=tokens["viewer"])
        await served.json("POST", "/api/schedules", body, status=201, headers=tokens["operator"])
        row = await served.json("GET", "/api/schedules/s", headers=tokens["viewer"])
        assert row["created_by"] == "operator"


async def test_a_server_fires_and_links_the_execution(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        await made(served, cron=None, every=1, payload={"n": 5}, overlap="allow")
        end = asyncio.get_running_loop().time() + PATIENCE_S
        firings: list[dict[str, Any]] = []
        while not firings:
            assert asyncio.get_running_loop().time() < end
            found = (await served.json("GET", "/api/schedules/s/firings"))["firings"]
            firings = [one for one in found if one["execution_id"]]
            await asyncio.sleep(0.02)
        execution = await served.until(firings[-1]["execution_id"], "completed")
        assert (execution["result"], execution["tags"]) == (5, ["schedule:s"])
        listed = await served.json("GET", "/api/executions?tag=schedule:s")
        assert firings[-1]["execution_id"] in [row["execution_id"] for row in listed["executions"]]


TRIGGERED = playbook(
    "  - step: one\n    tool: {kind: noop}\n",
    "timed",
    triggers=[
        {"schedule": "nightly", "cron": "30 2 * * *", "timezone": "Europe/Vienna", "overlap": "queue"},
        {"schedule": "hourly", "every": "1h", "payload": {"n": 1}},
    ],
)


async def test_triggers_of_a_playbook_become_its_schedules(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await served.register(TRIGGERED)
        await served.json("POST", "/api/schedules", {"name": "mine", "path": "test/timed", "every": "2h"})
        rows = {one["schedule_id"]: one for one in (await served.json("GET", "/api/schedules"))["schedules"]}
        assert list(rows) == ["mine", "test:timed:hourly", "test:timed:nightly"]
        nightly = rows["test:timed:nightly"]
        assert (nightly["owner"], nightly["path"], nightly["overlap"]) == ("test/timed", "test/timed", "queue")
        await served.json("DELETE", "/api/schedules/test:timed:nightly", status=409)
        problem = await served.json("PATCH", "/api/schedules/test:timed:nightly", {"every": 5}, status=409)
        assert "`triggers` of the playbook" in problem["detail"]
        await served.json("POST", "/api/schedules/test:timed:nightly/pause")
        await served.register(TRIGGERED)
        await served.register(TRIGGERED.replace("30 2", "45 2").replace('"hourly"', '"often"'))
        rows = {one["schedule_id"]: one for one in (await served.json("GET", "/api/schedules"))["schedules"]}
        assert list(rows) == ["mine", "test:timed:nightly", "test:timed:often"]
        assert rows["test:timed:nightly"]["cron"] == "45 2 * * *"
        assert rows["test:timed:nightly"]["paused"]  # it stays paused
        await served.json("DELETE", "/api/catalog?path=test/timed&version=2")  # the version before it counts again
        rows = {one["schedule_id"]: one for one in (await served.json("GET", "/api/schedules"))["schedules"]}
        assert list(rows) == ["mine", "test:timed:hourly", "test:timed:nightly"]
        await served.json("DELETE", "/api/catalog?path=test/timed")
        assert [one["schedule_id"] for one in (await served.json("GET", "/api/schedules"))["schedules"]] == ["mine"]


async def test_triggers_change_no_schedule_of_others(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for path in ("test/timed", "test:timed", "test%3Atimed"):
            await served.register(TRIGGERED.replace("test/timed", path))
        rows = (await served.json("GET", "/api/schedules"))["schedules"]
        assert sorted(one["owner"] for one in rows) == sorted(["test%3Atimed", "test/timed", "test:timed"] * 2)


async def test_a_playbook_with_a_bad_trigger_is_not_registered(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        content = TRIGGERED.replace("30 2", "30 25")
        problem = await served.json("POST", "/api/catalog", {"content": content}, status=422)
        assert [one["code"] for one in problem["errors"]] == ["NOE132"]
        assert (await served.json("GET", "/api/schedules"))["schedules"] == []


async def test_a_backfill_is_counted_made_once_and_runs_to_its_end(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await made(served)
        now = served.services.clock.civil()
        body = {"since": now - 3 * DAY, "until": now, "at_once": 2}
        dry = await served.json("POST", "/api/schedules/s/backfill", {**body, "dry_run": True}, status=201)
        assert (dry["count"], dry["dry_run"]) == (3, True)
        assert len((await served.json("GET", "/api/schedules"))["schedules"]) == 1
        found = await served.json("POST", "/api/schedules/s/backfill", body, status=201)
        name = found["schedule_id"]
        problem = await served.json("POST", "/api/schedules/s/backfill", body, status=409)
        assert "There is a backfill" in problem["detail"]
        assert (await served.json("PATCH", f"/api/schedules/{name}", {"cron": "1 1 * * *"}, status=409))["detail"]
        assert (await served.json("POST", f"/api/schedules/{name}/backfill", body, status=409))["detail"]
        progress = await served.json("GET", f"/api/schedules/{name}/progress")
        assert progress["running"] + progress["ended"] + progress["left"] == 3


@pytest.mark.parametrize(
    ("since", "until", "text"),
    [
        (-3 * DAY, DAY, "in the future"),
        (-DAY, -DAY + 1, "no time in this range"),
        (-11_000_000, 0, "more than 10,000 times"),
    ],
)
async def test_a_backfill_needs_a_range_of_the_past(tmp_path: Path, since: int, until: int, text: str) -> None:
    async with in_process(tmp_path) as served:
        await made(served, cron=None, every="1s" if "more" in text else "1w")
        now = served.services.clock.civil()
        body = {"since": now + since, "until": now + until}
        if "future" in text:
            body["since"] = 0
        problem = await served.json("POST", "/api/schedules/s/backfill", body, status=422)
        assert text in problem["detail"]
