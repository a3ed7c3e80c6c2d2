"""Plans of tasks, and that literal fields equal rendered ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from noetl.engine.tasks.actions import RunTask
from noetl.engine.tasks.run_info import RunInfo, Scopes
from noetl.engine.tasks.task_plan import Layered, TaskPlan, is_constant, plan_task, plans_of
from noetl.model.outcome import Outcome, failed, ok
from tests.unit.engine.pipeline.piping import Run, info, tasks


def plan(text: str, layered: Mapping[str, Any] | None = None) -> TaskPlan:
    return plan_task(tasks(f"- a: {{{text}}}")[0], Layered(layered or {}))


@pytest.mark.parametrize(
    "text",
    [
        "kind: noop",
        "kind: noop, message: plain",
        "kind: http, url: 'http://x', timeout_ms: 50",
        "kind: noop, spec: {policy: {rules: [{when: '{{ true }}', then: {do: skip}}]}}",
    ],
)
def test_a_task_without_templates_is_given_as_it_is_written(text: str) -> None:
    found = plan(text)
    assert found.fields == {name: value.data for name, value in found.task.fields.items()}


@pytest.mark.parametrize(
    ("text", "constant"),
    [
        ("kind: noop, message: plain", True),
        ("kind: noop, message: '{{ workload.a }}'", False),
        ("kind: noop, set: {ctx.a: '{{ output }}'}", False),
        ("kind: noop, spec: {policy: {rules: [{when: '{{ true }}', then: {do: skip}}]}}", False),
        ("kind: noop, spec: {assert: {returns: [a]}}", False),
        ("kind: noop, timeout_ms: 50", False),
        ("kind: noop, input: {a: '{{ now() }}'}", False),
        ("kind: workbook, task: other", False),
    ],
)
def test_only_a_task_that_evaluates_nothing_is_constant(text: str, *, constant: bool) -> None:
    assert is_constant(plan(text)) is constant


@pytest.mark.parametrize(
    "text",
    [
        "kind: noop, message: 'for {{ workload.who }}'",
        "kind: noop, result: {a: 1}",  # every attempt has a map of its own
        "kind: noop, input: {x: 1}",
        "kind: http, url: 'http://x', auth: mine",
        "kind: http, url: 'http://x', timeout_ms: '{{ workload.most }}'",
        "kind: noop, spec: {result: {store: inline}}",
        "kind: python, code: 'result = 1'",
        "kind: sleep, seconds: 1",
    ],
)
def test_whatever_depends_on_the_run_is_rendered_for_it(text: str) -> None:
    assert plan(text).fields is None


def test_limits_are_looked_up_once() -> None:
    layered = {"timeouts": {"tool_default_ms": 70, "sink_default_ms": 90}, "limits": {"max_transitions": 5}}

    def timeout(text: str) -> tuple[Any, float]:
        found = plan(text, layered)
        return found.timeout, found.timeout_scale

    assert timeout("kind: noop") == (70, 1)
    assert timeout("kind: postgres, table: t, data: []") == (90, 1)
    assert timeout("kind: noop, timeout_ms: 8") == (8, 1)
    assert timeout("kind: noop, spec: {timeout: 2}") == (2, 1_000)
    assert timeout("kind: noop, spec: {timeout: {total: 3}}") == (3, 1_000)
    assert timeout("kind: sleep, seconds: 1") == (None, 1)
    assert plan("kind: noop", layered).layered.most_transitions == 5
    assert plan("kind: noop, spec: {limits: {max_transitions: 6}}", layered).layered.most_transitions == 6


_KINDS = st.sampled_from(
    [
        "kind: noop",
        "kind: noop, message: plain",
        "kind: noop, message: '{{ workload.who }}'",
        "kind: http, url: 'http://x'",
        "kind: http, url: 'http://x', timeout_ms: 20",
        "kind: noop, spec: {durability: task}",
        "kind: noop, spec: {timeout: 1}",
        "kind: noop, input: {x: '{{ _prev }}'}",
        "kind: noop, set: {ctx.seen: '{{ output.data }}'}",
        "kind: noop, spec: {policy: {rules: [{else: {then: {do: continue}}}]}}",
    ]
)
_OUTCOMES = st.sampled_from(
    [ok(), ok(1), ok({"a": 1}), failed("unknown", "no"), failed("connection", "lost", retryable=True)]
)


def played(run_info: RunInfo, texts: list[str], outcomes: list[Outcome], planned: bool, carried: bool) -> Any:
    """Run a pipeline; return its actions, records, waits, end and memory."""
    pipeline = tasks("\n".join(f"- t{number}: {{{text}}}" for number, text in enumerate(texts)))
    plans = plans_of(pipeline, Layered(run_info.settings))
    if not planned:
        plans = tuple(replace(plan, fields=None) for plan in plans)
    known = replace(run_info, plans=plans)
    scopes = Scopes(workload={"who": "you"}, args={"given": 1})
    scripted = {f"t{number}": [outcome, ok("at last")] for number, outcome in enumerate(outcomes)}
    run = Run(pipeline, scripted, scopes, known, carried=carried)
    end = run.result()
    asked = [tuple(getattr(one, name) for name in RunTask.__struct_fields__) for one in run.ran]
    memory = run.pipeline.memory.as_data()
    return asked, run.waits, run.records, (end.status, end.result, end.error, end.writes, end.scratch), memory


@settings(max_examples=150)
@given(st.lists(st.tuples(_KINDS, _OUTCOMES), min_size=1, max_size=4), st.booleans(), st.sampled_from([None, 3]))
def test_fields_without_a_template_are_what_rendering_gives(
    script: list[tuple[str, Outcome]], carried: bool, index: int | None
) -> None:
    texts, outcomes = [text for text, _ in script], [outcome for _, outcome in script]
    run_info = info(index=index, settings={"timeouts": {"tool_default_ms": 500}})
    rendered, planned = (played(run_info, texts, outcomes, way, carried) for way in (False, True))
    assert planned == rendered
