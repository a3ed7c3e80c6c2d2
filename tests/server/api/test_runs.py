"""Step-runs and items over the API."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.serving import WAITS, in_process, playbook

pytestmark = pytest.mark.asyncio

TRIED = playbook(
    """\
  - step: fetch
    tool:
      name: get
      kind: python
      code: 'result = 1 // int(n)'
      input: {n: 0}
      spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 2, delay: 0}}]}}
    next: {arcs: [{step: each, when: "{{ event.name == 'step.failed' }}", args: {a: 5}}]}
  - step: each
    loop: {in: [1, 0, 2], iterator: x, spec: {mode: parallel, policy: {failure: {mode: best_effort}}}}
    tool: {kind: python, code: 'result = 10 // int(n)', input: {n: '{{ iter.x }}'}}
""",
    "tried",
)


async def test_a_run_is_shown_with_its_attempts_and_decisions(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(TRIED)
        await served.until(started, "partial")
        run = await served.json("GET", f"/api/executions/{started}/runs", params={"run": "fetch#1"})
        assert (run["state"], run["step"], run["number"], run["letter"]) == ("failed", "fetch", 1, None)
        assert "ZeroDivisionError" in run["error"]["message"]
        assert run["worker"]
        tried = [
            (one["task"], one["attempt"], one["kind"], one["ok"], one["decision"]["do"]) for one in run["attempts"]
        ]
        assert tried == [("fetch_task", 1, "python", False, "retry"), ("fetch_task", 2, "python", False, "fail")]
        assert all(one["ended_at"] >= one["started_at"] for one in run["attempts"])
        early = await served.json(
            "GET", f"/api/executions/{started}/runs", params={"run": "fetch#1", "seq": run["scheduled_seq"]}
        )
        assert (early["state"], early["seq"], early["attempts"]) == ("scheduled", run["scheduled_seq"], [])
        await served.json("GET", f"/api/executions/{started}/runs?run=other%231", status=404)


async def test_a_failed_item_has_its_letter_and_its_input(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(TRIED)
        await served.until(started, "partial")
        (letter,) = (await served.json("GET", "/api/dlq"))["letters"]
        runs, items = f"/api/executions/{started}/runs", f"/api/executions/{started}/items"
        item = await served.json("GET", runs, params={"run": "each#1", "item": 1})
        assert (item["state"], item["value"], item["args"]) == ("failed", 0, {"a": 5})
        assert item["letter"]["message_id"] == letter["message_id"]
        assert item["input"]["input"] == {"a": 5, "n": 0}
        whole = await served.json("GET", items, params={"run": "each#1"})
        assert (whole["map"], whole["total"], whole["counts"]) == ("dfd", 3, {"done": 2, "failed": 1})
        listed = await served.json("GET", items, params={"run": "each#1", "as": "list", "state": "failed"})
        assert [(one["index"], one["state"]) for one in listed["rows"]] == [(1, "failed")]
        page = await served.json("GET", items, params={"run": "each#1", "as": "list", "sort": "slow", "limit": 2})
        assert (len(page["rows"]), page["next"]) == (2, 2)
        await served.json("GET", items, params={"run": "fetch#1"}, status=409)
        await served.json("GET", items, params={"run": "x#1"}, status=404)
        await served.json("POST", f"/api/dlq/{letter['message_id']}/replay", {"patch": {"input.n": 5}})
        await served.until(started, "completed")
        assert (await served.json("GET", items, params={"run": "each#1"}))["map"] == "dpd"
        assert (await served.json("GET", runs, params={"run": "each#1", "item": 1}))["state"] == "repaired"


async def test_a_waiting_run_names_its_signal_and_deadlines(tmp_path: Path) -> None:
    content = WAITS.replace("signal: go}", "signal: go}\n    spec: {timeout_s: 600}")
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(content)
        await served.until(started, "waiting")
        run = await served.json("GET", f"/api/executions/{started}/runs", params={"run": "ask#1"})
        assert (run["state"], run["signal"], run["ended_at"]) == ("waiting", "go", None)
        assert [one["what"] for one in run["deadlines"]] == ["the step (`timeout_s`)"]


async def test_a_window_of_the_log_tells_of_a_run_what_the_whole_log_tells(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(TRIED)
        await served.until(started, "partial")
        (letter,) = (await served.json("GET", "/api/dlq"))["letters"]
        patched = {"patch": {"input.n": 1}}
        await served.json("POST", f"/api/dlq/{letter['message_id']}/replay", patched)
        await served.until(started, "completed")
        asked = [{"run": "fetch#1"}, {"run": "each#1"}, {"run": "each#1", "item": 1}, {"run": "each#1", "item": 2}]
        runs, items = f"/api/executions/{started}/runs", f"/api/executions/{started}/items"
        whole = [await served.json("GET", runs, params=one) for one in asked]
        marks = await served.json("GET", items, params={"run": "each#1"})
        assert (whole[2]["state"], marks["map"]) == ("repaired", "dpd")
        await served.services.tracks.get(started)
        served.services.collected.forget(started)
        assert [await served.json("GET", runs, params=one) for one in asked] == whole
        assert await served.json("GET", items, params={"run": "each#1"}) == marks
