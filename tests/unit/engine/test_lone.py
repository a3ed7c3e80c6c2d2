"""Tests that a lone plain task comes to what its pipeline comes to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.playbook import Step
from noetl.engine.actions import Finished
from noetl.engine.lone import began, first_attempt, lone_task, went_well
from noetl.engine.pipeline import start
from noetl.engine.run_info import RunInfo, Scopes, for_step, for_work, info_for
from noetl.engine.task_plan import Layered
from noetl.model.messages import Record
from noetl.model.outcome import ok
from noetl.model.work import WorkItem
from noetl.wiring import language_kinds
from tests.unit.engine.piping import START, playbook

PLAIN = (
    "tool: {kind: noop}",
    "tool: {kind: noop, result: 7}",
    "tool: [{name: a, kind: noop, message: hello}]",
    "tool: [{a: {kind: http, url: 'http://x', spec: {pool: near}}}]",
    "tool: {kind: postgres, command: 'insert into t values (1)', spec: {sink: true}}",
)
NOT_PLAIN = (
    "next: t",
    "tool: [{a: {kind: noop}}, {b: {kind: noop}}]",
    "tool: {kind: noop, message: '{{ workload.who }}'}",
    "tool: {kind: noop, timeout_ms: 50}",
    "tool: {kind: noop, input: {x: 1}}",
    "tool: {kind: noop}\n    input: {x: 1}",
    "tool: {kind: noop}\n    spec: {durability: task}",
    "tool: {kind: noop}\n    spec: {limits: {max_transitions: 0}}",
    "tool: {kind: noop}\n    loop: {in: [1], iterator: i}",
    "tool: {kind: noop, set: {ctx.x: 1}}",
    "tool: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue}}}]}}}",
    "tool: {kind: sleep, seconds: 1}",
    "tool: {kind: python, code: 'result = 1'}",
)


def known(text: str, settings: dict[str, Any] | None = None) -> tuple[Step, RunInfo]:
    book = playbook(f"workflow:\n  - step: s\n    {text}\n  - {{step: t}}\n")
    step = book.workflow[0]
    return step, for_step(info_for(book, language_kinds()), step, Layered(settings or {}))


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_what_needs_more_than_itself_has_a_pipeline(text: str) -> None:
    assert lone_task(known(text)[1]) is None


@given(
    st.sampled_from(PLAIN), st.integers(1, 3), st.sampled_from([{}, {"a": [1]}]), st.sampled_from([None, 5, True, "x"])
)
def test_a_lone_task_comes_to_what_its_pipeline_comes_to(
    text: str, number: int, args: dict[str, Any], result: Any
) -> None:
    step, info = known(text, {"retries": {"plugin": {"max_attempts": 2}}})
    scopes = {"workload": {}, "ctx": {}, "args": args, "steps": {}, "statuses": {}, "job": {"uuid": "42"}}
    work = WorkItem("42:s#1", "42", f"s#{number}", "s", number, "hash", scopes)
    plan = lone_task(info)
    assert plan is not None
    records: list[Record] = []
    pipeline = start(step.tasks, Scopes.of(scopes), for_work(info, work), records)
    attempt = first_attempt(plan, work)
    assert attempt == pipeline.advance(START)
    ended = pipeline.resume(ok(result), START + 9)
    assert isinstance(ended, Finished)
    assert (ended.status, ended.result, ended.error, ended.writes, ended.scratch) == ("ok", result, None, {}, {})
    assert records == [began(plan, attempt, START), went_well(attempt, START, START + 9)]
