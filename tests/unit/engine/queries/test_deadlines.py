"""Every time-out that applies: of the task, item, loop, step and execution."""

from __future__ import annotations

import pytest

from noetl.engine.queries.explain import Standing, standings
from noetl.model.messages import ItemEnd, Record, Report, Suspension
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
    script.now = BEGIN + 200  # when the report arrives
    one = told(progress(script, begun))
    assert limits(one) == {"the task `a_task` (`timeout_ms`)": (5_100, 5000)}
    assert one.until == BEGIN + 5_100


def test_a_task_that_ended_has_none() -> None:
    script = held("- step: a\n  tool: {kind: http, url: x, timeout_ms: 5000}\n")
    begun = Record("task.started", BEGIN, task="a_task", task_run_id="k", payload={"timeout_ms": 5000})
    assert limits(told(progress(script, begun, Record("task.done", BEGIN + 1, task="a_task", task_run_id="k")))) == {}


def begun(script: Script, at: int, *ended: int, chunk: str = "c1") -> None:
    script.now = at
    items = tuple(ItemEnd(index, "ok") for index in ended)
    script.tell(Report(f"r{len(script.events)}", "a#1", 1, "w1", items=items, chunk=chunk))


def looping(more: str, count: int = 40) -> Script:
    """A loop on one lease, three items at once, without a report yet."""
    loop = f"loop: {{in: '{{{{ range({count}) | list }}}}', iterator: x, item_timeout_ms: {more}}}"
    loop = loop.replace("iterator: x", "iterator: x, spec: {mode: parallel, max_in_flight: 3, policy: {exec: local}}")
    return held(f"- step: a\n  {loop}\n  tool: {{kind: noop}}\n", "workload: {ms: 700}\n")


@pytest.mark.parametrize("given", ["700", '"{{ workload.ms }}"'])
def test_items_that_run_have_absolute_deadlines(given: str) -> None:
    script = looping(given)
    assert limits(told(script)) == {"each item (`item_timeout_ms`)": (None, 700.0)}
    begun(script, BEGIN + 50)
    assert limits(told(script)) == {f"item {index} (`item_timeout_ms`)": (750, 700.0) for index in range(3)}
    begun(script, BEGIN + 100, 1)
    begun(script, BEGIN + 200, 0)
    assert limits(told(script)) == {
        "item 2 (`item_timeout_ms`)": (750, 700.0),
        "item 3 (`item_timeout_ms`)": (800, 700.0),
        "item 4 (`item_timeout_ms`)": (900, 700.0),
    }
    assert told(script).until == BEGIN + 750


def test_of_many_items_the_nearest_are_told_and_the_others_counted() -> None:
    script = looping("700")
    loop = script.state.runs["a#1"].loop
    assert loop is not None
    loop.pieces["c1"].width = 12
    begun(script, BEGIN + 50)
    found = limits(told(script))
    assert [name for name in found if name.startswith("item ")] == [f"item {n} (`item_timeout_ms`)" for n in range(5)]
    assert found["the next of 7 more items under way (`item_timeout_ms`)"] == (750, 700.0)


def test_an_item_limit_that_only_the_worker_can_tell() -> None:
    script = looping('"{{ iter.x }}"')
    begun(script, BEGIN + 50)
    assert limits(told(script)) == {"each item (`item_timeout_ms: {{ iter.x }}`)": (None, None)}


def test_an_item_that_waits_keeps_its_deadline() -> None:
    script = looping("700")
    suspension = Suspension(cause="wait", pipeline={"deadline": BEGIN + 640}, until=BEGIN + 640, signal="go", index=0)
    script.tell(Report("s", "a#1", 1, "w1", suspension=suspension, chunk="c1"))
    [item] = [one for one in standings(script.plan, script.state, script.events) if one.what == "item"]
    assert limits(item) == {"item 0 (`item_timeout_ms`)": (640, None)}


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
