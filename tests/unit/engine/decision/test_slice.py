"""Tests slicing: work carries what its templates can read, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.model.messages import ItemEnd, LeaseLost, PatchCtx, Report, Signal, Suspension
from tests.unit.engine.given import book, done, given

HEAD = "workload: {w1: 1, w2: 2}"


def sliced(tool: str) -> Any:
    text = book(
        f"""
- step: one
  tool: {{kind: noop}}
  set: {{ctx.a: 1, ctx.b: 2}}
  next:
    arcs: [{{step: two, args: {{x: 1}}}}]
- step: two
  tool: {tool}
""",
        HEAD,
    )
    return given(text, done("one#1", {"r": 1})).decision.work[0].scopes


@pytest.mark.parametrize(
    ("message", "workload", "ctx", "steps"),
    [
        ("plain", {}, {}, {}),
        ("{{ workload.w1 }}", {"w1": 1}, {}, {}),
        ("{{ w2 }}", {"w2": 2}, {}, {}),
        ("{{ ctx.a }}", {}, {"a": 1}, {}),
        ("{{ vars.b }}", {}, {"b": 2}, {}),
        ("{{ b }}", {}, {"b": 2}, {}),
        ("{{ ctx }}", {}, {"a": 1, "b": 2}, {}),
        ("{{ ctx[args.x] }}", {}, {"a": 1, "b": 2}, {}),
        ("{{ one.r }}", {}, {}, {"one": {"r": 1}}),
    ],
)
def test_only_what_is_read_is_sent(message: str, workload: Any, ctx: Any, steps: Any) -> None:
    scopes = sliced(f'{{kind: noop, message: "{message}"}}')
    assert (scopes["workload"], scopes["ctx"], scopes["steps"]) == (workload, ctx, steps)
    assert scopes["args"] == {"x": 1}


def test_python_that_mentions_everything_gets_everything() -> None:
    scopes = sliced('{kind: python, code: "result = context"}')
    assert scopes["workload"] == {"w1": 1, "w2": 2}
    assert scopes["steps"] == {"one": {"r": 1}}
    assert sliced('{kind: python, code: "result = 1"}')["steps"] == {}


def test_statuses_are_sent_where_templates_ask_for_steps() -> None:
    assert sliced("{kind: noop, message: \"{{ done('one') }}\"}")["statuses"] == {"one": "ok"}
    assert sliced("{kind: noop}")["statuses"] == {}


PARALLEL = book(
    """
- step: s
  set: {ctx.a: 1, ctx.m: {k: 1}}
  next: [one, two]
- step: one
  tool: {kind: noop, message: "{{ ctx.a }} {{ ctx.m }} {{ ctx.late | default(0) }} {{ two.r | default(0) }}"}
- step: two
  tool: {kind: noop}
  set: {ctx.a: 2, ctx.m.k: 2, ctx.late: 2}
"""
)


def test_a_run_that_is_handed_out_again_gets_the_slice_of_its_scheduling() -> None:
    scene = given(PARALLEL)
    (first,) = [work for work in scene.decision.work if work.step == "one"]
    scene.when(done("two#1", {"r": 1})).when(PatchCtx("p", {"a": 3})).when(LeaseLost("l", "one#1", 1))
    (again,) = scene.decision.work
    assert first.scopes["ctx"] == {"a": 1, "m": {"k": 1}}
    assert again == first
    assert scene.state.ctx == {"a": 3, "m": {"k": 2}, "late": 2}


def test_a_run_that_was_suspended_goes_on_with_the_slice_of_its_scheduling() -> None:
    scene = given(PARALLEL)
    (first,) = [work for work in scene.decision.work if work.step == "one"]
    pause = Suspension("wait", {"counter": 1, "writes": {"mine": 1}}, signal="go")
    scene.when(Report("w", "one#1", 1, "w1", suspension=pause)).when(done("two#1")).when(Signal("g", "go"))
    (again,) = scene.decision.work
    assert again.scopes == first.scopes
    assert again.resume is not None
    assert again.resume["pipeline"]["writes"] == {"mine": 1}


def test_items_of_a_sequential_loop_see_the_writes_of_those_before_and_of_nobody_else() -> None:
    text = book(
        """
- step: s
  next: [one, two]
- step: one
  loop: {in: [1, 2, 3], iterator: i, spec: {mode: sequential, policy: {exec: distributed}}}
  tool: {kind: noop, message: "{{ ctx.n | default(0) }} {{ ctx.other | default(0) }}"}
- step: two
  tool: {kind: noop}
  set: {ctx.other: 1}
"""
    )
    scene = given(text, done("two#1"))
    scene.when(Report("1", "one#1", 1, "w1", items=(ItemEnd(0, "ok", writes={"n": 7, "unread": 1}),), chunk="c1"))
    (work,) = scene.decision.work
    assert work.scopes["ctx"] == {"n": 7}
    scene.when(PatchCtx("p", {"n": 8})).when(LeaseLost("l", "one#1", 1, "c2"))
    assert scene.decision.work[0].scopes["ctx"] == {"n": 7}


def test_only_names_are_recorded_with_a_scheduling() -> None:
    scene = given(PARALLEL, done("two#1", {"r": 1}))
    seen = {event.entity_id: event.payload.get("sees") for event in scene.log if event.event_type == "step.scheduled"}
    assert seen == {"s": None, "one": {"ctx": ["a", "m"]}, "two": None}
