"""Laws of pipelines: snapshots, bounded transitions, unique keys."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.engine.pipeline.pipeline import Pipeline, advance, restore, resume, start, wake
from noetl.engine.tasks.actions import Finished, Next, RunTask, Suspend
from noetl.engine.tasks.memory import Memory
from noetl.engine.tasks.run_info import RunInfo, Scopes
from noetl.model.messages import Record
from noetl.model.outcome import Outcome, failed, ok
from tests.unit.engine.pipeline.piping import START, info, playbook, tasks

LABELS = ("a", "b", "c", "d")
BOOK = playbook("""
workbook:
  - shared:
      kind: http
      url: "{{ input.n | default(0) }} {{ gen_uuid() }}"
      spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 2, delay: 5}}]}}
  - waits: {kind: wait, signal: go}
  - deep: {kind: workbook, task: waits, timeout_ms: 90000}
workflow: [{step: s, tool: {kind: noop}}]
""").workbook
outcomes = st.sampled_from(
    [
        ok({"n": 1}),
        ok("again"),
        ok([1, {"data": 2}]),
        failed("server_error", "down", code="HTTP_503", retryable=True),
        failed("client_error", "no", code="HTTP_400", result={"why": 1}),
        failed("timeout", "late", retryable=True, sent=True),
    ]
)
actions = st.sampled_from(
    [
        "{do: continue, set: {ctx.last: '{{ _task }}', step.n: '{{ _attempt }}'}}",
        "{do: retry, attempts: 3, delay: 1, backoff: exponential, jitter: true}",
        "{do: retry, attempts: 2, delay: 60}",
        "{do: jump, to: a}",
        "{do: jump, to: previous}",
        "{do: break, set_iter: {seen: '{{ outcome.result }}'}}",
        "{do: fail}",
        "{do: skip}",
    ]
)
conditions = st.sampled_from(
    [
        "{{ outcome.status == 'error' }}",
        "{{ outcome.result == 'again' }}",
        "{{ outcome.error.retryable }}",
        "{{ ctx.last == 'b' }}",
    ]
)
bodies = st.sampled_from(
    [
        "kind: http, url: '{{ _prev }} {{ gen_uuid() }}'",
        "kind: http, method: POST, url: '{{ ctx.last | default(0) }} {{ step.n | default(0) }}'",
        "kind: noop, set: {ctx.count: '{{ (ctx.count | default(0)) + 1 }}'}",
        "kind: sleep, seconds: 30",
        "kind: wait, signal: go, timeout_s: 60",
        "kind: playbook, path: p, args: {x: '{{ _idempotency_key }}'}",
        "kind: workbook, task: shared, args: {n: '{{ _attempt }}'}",
        "kind: workbook, task: shared, timeout_ms: 2500",
        "kind: workbook, task: deep, timeout_ms: 45000",
        "kind: noop, message: '{{ missing.name }}'",
    ]
)


@st.composite
def pipelines(draw: st.DrawFn) -> str:
    lines: list[str] = []
    for label in LABELS[: draw(st.integers(1, 4))]:
        rules = [f'{{when: "{draw(conditions)}", then: {draw(actions)}}}' for _ in range(draw(st.integers(0, 2)))]
        closed: bool = draw(st.booleans())
        if rules and closed:
            rules.append(f"{{else: {{then: {draw(actions)}}}}}")
        policy = f", spec: {{policy: {{rules: [{', '.join(rules)}]}}}}" if rules else ""
        lines.append(f"- {label}: {{{draw(bodies)}{policy}}}")
    return "\n".join(lines)


def _given(index: int | None) -> tuple[Scopes, RunInfo]:
    scopes = Scopes(workload={"w": 1}, ctx={"count": 5}, args={"n": 2})
    limits = {"limits": {"max_transitions": 40}}
    return scopes, info(workbook=BOOK, index=index, settings=limits)


def _go(pipeline: Pipeline, action: Next, outcome: Outcome, at: int) -> Next:
    if isinstance(action, RunTask):
        return resume(pipeline, outcome, at)
    assert isinstance(action, Suspend)
    if action.cause == "playbook":
        woke = {"by": "child", "status": "completed" if outcome.status == "ok" else "failed", "result": outcome.result}
        return wake(pipeline, woke, at)
    if action.cause == "wait" and outcome.status == "ok":
        return wake(pipeline, {"by": "signal", "name": "go", "data": outcome.result}, at)
    return wake(pipeline, {"by": "timer"}, at)


def _driven(text: str, script: list[Outcome], index: int | None, carried: bool) -> tuple[list[Next], list[Record]]:
    scopes, given_ = _given(index)
    pipeline = start(tasks(text), scopes, given_)
    records: list[Record] = []
    seen: list[Next] = []
    action, at = advance(pipeline, START), START
    while True:
        seen.append(action)
        records += pipeline.records()
        if isinstance(action, Finished):
            return seen, records
        if carried:
            snapshot: Any = json.loads(json.dumps(pipeline.snapshot()))
            pipeline = restore(pipeline.tasks, snapshot, scopes, given_)
        at += 1_000
        action = _go(pipeline, action, script[len(seen) % len(script)], at)


@settings(max_examples=150, deadline=None)
@given(pipelines(), st.lists(outcomes, min_size=1, max_size=6), st.sampled_from([None, 0, 7]))
def test_a_snapshot_at_every_point_gives_the_same_future(text: str, script: list[Outcome], index: int | None) -> None:
    assert _driven(text, script, index, carried=True) == _driven(text, script, index, carried=False)


@settings(max_examples=100, deadline=None)
@given(pipelines(), st.lists(outcomes, min_size=1, max_size=6))
def test_every_pipeline_ends_within_its_budget(text: str, script: list[Outcome]) -> None:
    seen, _ = _driven(text, script, None, carried=False)
    runs = [action for action in seen if isinstance(action, RunTask) and "/" not in action.label]
    assert len(runs) <= 40


@settings(max_examples=100, deadline=None)
@given(pipelines(), st.lists(outcomes, min_size=1, max_size=6))
def test_a_key_and_an_attempt_are_handed_out_once(text: str, script: list[Outcome]) -> None:
    seen, _ = _driven(text, script, None, carried=False)
    handed = [(action.idempotency_key, action.attempt) for action in seen if isinstance(action, RunTask)]
    inner = [key for key in handed if key[0].endswith(":shared")]  # a call that is retried calls with the same key
    assert len(set(handed) - set(inner)) == len(handed) - len(inner)


@settings(max_examples=100, deadline=None)
@given(pipelines(), st.lists(outcomes, min_size=1, max_size=6))
def test_what_is_handed_out_is_plain_data(text: str, script: list[Outcome]) -> None:
    for action in _driven(text, script, None, carried=False)[0]:
        if isinstance(action, RunTask):
            json.dumps([action.fields, action.input, action.spec])


def test_an_empty_memory_is_an_empty_snapshot() -> None:
    assert Memory().as_data() == {"phase": "ready"}
    assert Memory.of(Memory().as_data()) == Memory()
