"""Tests that every time-out that runs is told: of the task, the item, the loop, the step, the execution."""

from __future__ import annotations

from noetl.engine.explain import Standing, standings
from noetl.model.messages import Record, Report
from noetl.testing.play import BEGIN, Hold, Script

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\n"


def held(step: str, head: str = "") -> Script:
    return Script(HEAD + head + "workflow:\n" + step, {"a": Hold()}, payload={}).run(timers=False)


def told(script: Script) -> Standing:
    [one] = standings(script.plan, script.state, script.events)
    return one


def limits(one: Standing) -> dict[str, tuple[int | None, float | None]]:
    return {limit.what: (None if limit.at is None else limit.at - BEGIN, limit.ms) for limit in one.deadlines}


def progress(script: Script, *records: Record) -> Script:
    [work] = script.work
    report = Report("progress", script.work[work].run_id, 1, "w1", records=records)
    script.tell(report)
    return script


def test_step_and_execution_have_their_own_and_the_earliest_counts() -> None:
    spec = "spec: {timeout_s: 20, policy: {lifecycle: {deadline_s: 50}}}"
    script = held(f"- step: a\n  tool: {{kind: noop}}\n  {spec}\n", "executor: {spec: {timeout_s: 90}}\n")
    one = told(progress(script, Record("task.started", BEGIN, task="a_task", task_run_id="k")))
    assert limits(one) == {
        "the step (`timeout_s`)": (20_000, None),
        "the step, from when it was scheduled (`deadline_s`)": (50_000, None),
        "the execution (`executor.spec.timeout_s`)": (90_000, None),
    }
    assert one.until == BEGIN + 20_000


def test_a_task_that_runs_has_its_own_from_when_it_began() -> None:
    script = held("- step: a\n  tool: {kind: http, url: x, timeout_ms: 5000}\n")
    begun = Record("task.started", BEGIN + 100, task="a_task", task_run_id="k", payload={"timeout_ms": 5000})
    one = told(progress(script, begun))
    assert limits(one) == {"the task `a_task` (`timeout_ms`)": (5_100, 5000)}
    assert one.until == BEGIN + 5_100


def test_a_task_that_ended_has_none() -> None:
    script = held("- step: a\n  tool: {kind: http, url: x, timeout_ms: 5000}\n")
    begun = Record("task.started", BEGIN, task="a_task", task_run_id="k", payload={"timeout_ms": 5000})
    assert limits(told(progress(script, begun, Record("task.done", BEGIN + 1, task="a_task", task_run_id="k")))) == {}


def test_a_loop_tells_how_long_each_item_may_take() -> None:
    loop = "loop: {in: [1, 2], iterator: x, item_timeout_ms: 700, total_timeout_ms: 9000}"
    one = told(held(f"- step: a\n  {loop}\n  tool: {{kind: http, url: x, timeout_ms: 300}}\n"))
    assert limits(one) == {
        "the loop (`total_timeout_ms`)": (9_000, None),
        "each item (`item_timeout_ms`)": (None, 700.0),
        "each attempt of the task `a_task` (`timeout_ms`)": (None, 300.0),
    }


def test_a_token_at_a_gate_is_under_the_execution_s() -> None:
    gate = "spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}"
    one = told(held(f"- step: a\n  tool: {{kind: noop}}\n  {gate}\n", "executor: {spec: {timeout_s: 90}}\n"))
    assert limits(one) == {"the execution (`executor.spec.timeout_s`)": (90_000, None)}
