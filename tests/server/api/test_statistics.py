"""Statistics of executions and steps over the API."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl.server.cache.step_times import StepTimesCache
from noetl.settings import ServerSettings
from tests.server.serving import FAILS, ONE, TWO, WAITS, bearer, in_process, secret

pytestmark = pytest.mark.asyncio


async def test_executions_are_counted_by_playbook_and_over_time(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        ones = [await served.start(ONE) for _ in range(3)]
        fails, waits = await served.start(FAILS), await served.start(WAITS)
        took = []
        for one in ones:
            row = await served.until(one, "completed")
            took.append(row["ended_at"] - row["started_at"])
        await served.until(fails, "failed")
        await served.until(waits, "waiting")
        await served.json("POST", "/api/try", {"content": ONE})  # a trial does not count
        found = await served.json("GET", "/api/statistics")
        assert (found["executions"], found["is_whole"], found["left_out"]) == (5, True, 0)
        assert found["counts"] == {"completed": 3, "failed": 1, "waiting": 1}
        assert found["good"] == 0.75
        assert (found["p50_ms"], found["p95_ms"]) == (sorted(took)[1], max(took))
        assert [one["path"] for one in found["playbooks"]] == ["test/one", "test/fails", "test/waits"]
        assert (found["playbooks"][1]["good"], found["playbooks"][2]["good"]) == (0.0, None)
        assert sum(sum(one["counts"].values()) for one in found["buckets"]) == 5
        assert all(one["at"] % found["bucket_ms"] == 0 for one in found["buckets"])
        some = await served.json("GET", "/api/statistics", params={"path": "test/o*", "since": 0, "bucket": 1_000})
        assert (some["executions"], len(some["buckets"]) <= 500, some["bucket_ms"] > 1_000) == (3, True, True)
        for bucket in (40 * 86_400_000, 10**12 + 1, 2**40):  # longer than the week
            whole = await served.json("GET", "/api/statistics", params={"bucket": bucket})
            assert (whole["executions"], whole["bucket_ms"]) == (5, bucket)
            assert sum(sum(one["counts"].values()) for one in whole["buckets"]) == 5
        none = await served.json("GET", "/api/statistics", params={"since": found["until"] + 1_000})
        assert (none["executions"], none["oldest"], none["p50_ms"], none["counts"]) == (0, None, None, {})


async def test_steps_have_their_own_statistics_and_a_grid(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        done = await served.start(FAILS, payload={})
        await served.until(done, "failed")
        open_one = await served.start(FAILS.replace("next: bad", "next: ask").replace("step: bad", "step: ask"))
        await served.until(open_one, "failed")
        path = {"path": "test/fails", "by": "step"}
        found = await served.json("GET", "/api/statistics", params=path)
        assert [(one["step"], one["runs"], one["failed"]) for one in found["steps"]] == [
            ("first", 2, 0),
            ("ask", 1, 1),
            ("bad", 1, 1),
        ]
        assert (found["steps_read"], found["steps_of"]) == (2, 2)
        assert found["grid"]["steps"] == ["first", "ask", "bad"]
        assert [(row["execution_id"], row["cells"]) for row in found["grid"]["rows"]] == [
            (open_one, ["done", "failed", ""]),
            (done, ["done", "", "failed"]),
        ]
        for wrong in ({"by": "step"}, {"by": "step", "path": "test/*"}):
            refused = await served.json("GET", "/api/statistics", params=wrong, status=400)
            assert refused["fix"] == "Name its path, without `*`."


async def test_a_request_reads_a_bounded_number_of_events_and_the_next_one_reads_on(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = [await served.start(TWO) for _ in range(3)]
        for one in started:
            await served.until(one, "completed")
        store = served.services.store
        rows = [dict(await store.execution(one) or {}) for one in started]
        few = StepTimesCache(store, most_events=2 * rows[0]["last_seq"])
        first = await few.of(rows)
        assert [one is not None for one in first] == [True, True, False]
        again = await few.of(rows)
        assert [list(one or ()) for one in again] == [["one", "two"]] * 3
        tiny = StepTimesCache(store, most_events=0)
        assert await tiny.of(rows) == [None, None, None]


async def test_statistics_of_a_namespace_show_nothing_of_others(tmp_path: Path) -> None:
    ours = bearer(await secret(tmp_path, "editor", "ours", namespaces=["test/"]))
    theirs = bearer(await secret(tmp_path, "viewer", "theirs", namespaces=["other/"]))
    async with in_process(tmp_path, ServerSettings(auth="token")) as served:
        await served.json("POST", "/api/catalog", {"content": ONE}, headers=ours)
        await served.json("POST", "/api/execute", {"path": "test/one"}, headers=ours)
        for path in ({}, {"path": "test/one"}, {"path": "test/one", "by": "step"}):
            mine = await served.json("GET", "/api/statistics", params=path, headers=ours)
            other = await served.json("GET", "/api/statistics", params=path, headers=theirs)
            assert (mine["executions"], other["executions"], other["playbooks"]) == (1, 0, [])
