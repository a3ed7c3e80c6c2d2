"""Routers: names of events, writes, and names in templates.

Modes, failures and errors of conditions are played in tests/scenarios/route_* and fail_*.
"""

from __future__ import annotations

from typing import Any

import pytest

from noetl.model.outcome import failed
from noetl.testing.play import Said, Script, play
from tests.unit.engine.given import book, done, given

LEAVES = "".join(f"- step: {name}\n  tool: {{kind: noop}}\n" for name in ("yes", "no", "other"))
BROKEN = failed("timeout", "no answer", code="HTTP_408")


def routed(first: str, outcome: Any = None, head: str = "") -> Script:
    return play(book(f"- step: s\n  tool: {{kind: noop}}\n{first}\n{LEAVES}", head), {"s": outcome})


def went(script: Script) -> list[str]:
    return [run.partition("#")[0] for run in script.runs()][1:]


@pytest.mark.parametrize("name", ["step.failed", "call.error", "action_error"])
def test_a_failure_is_routed_by_an_arc_that_asks_for_it(name: str) -> None:
    script = routed(
        f"""
  next:
    arcs:
      - {{step: no}}
      - {{step: yes, when: "{{{{ event.name == '{name}' and outcome.error.kind == 'timeout' }}}}"}}
""",
        BROKEN,
    )
    assert went(script) == ["yes"]
    assert script.status == "completed"


@pytest.mark.parametrize("name", ["step.done", "call.done", "step.exit", "action_completed"])
@pytest.mark.parametrize("shape", ["{{{{ event.name == '{0}' }}}}", "{{{{ event.name in ['{0}', 'x'] }}}}"])
def test_event_names_equal_their_older_names(name: str, shape: str) -> None:
    script = routed(f"""
  next:
    arcs:
      - {{step: yes, when: "{shape.format(name)}"}}
""")
    assert went(script) == ["yes"]


def test_another_event_name_does_not_match() -> None:
    script = routed("""
  next:
    arcs:
      - {step: no, when: "{{ event.name in ['step.failed', 'loop.item'] }}"}
      - {step: yes, when: "{{ event.name not in ['call.error'] }}"}
""")
    assert went(script) == ["yes"]


def test_a_bare_and_a_nested_set_write_ctx() -> None:
    script = routed("  set: {x: 1, ctx.deep.y: 2, ctx.deep.z: 3}")
    assert script.state.ctx == {"x": 1, "deep": {"y": 2, "z": 3}}


def test_task_writes_are_seen_by_the_steps_set() -> None:
    script = routed('  set: {ctx.b: "{{ ctx.a + 1 }}"}', Said(1, writes={"a": 4}))
    assert script.state.ctx == {"a": 4, "b": 5}


def test_a_set_that_reads_nothing_fails_the_step() -> None:
    script = routed('  set: {ctx.a: "{{ outcome.result.totl }}"}', {"total": 1})
    assert script.status == "failed"
    error = script.of("step.failed")[0].payload["error"]
    assert error["kind"] == "template"
    assert "ctx.a" in error["message"]
    assert "total" in error["message"]


def test_with_loose_templates_it_is_null() -> None:
    script = routed(
        '  set: {ctx.a: "{{ outcome.result.totl }}"}', {"total": 1}, "executor: {spec: {strict_templates: false}}"
    )
    assert script.status == "completed"
    assert script.state.ctx == {"a": None}


def test_or_it_fails_the_step() -> None:
    script = routed(
        "  next:\n    arcs:\n      - {step: no, when: \"{{ 1 < 'a' }}\", spec: {on_when_error: fail_step}}\n      - {step: yes}"
    )
    assert went(script) == []
    assert script.status == "failed"
    assert script.state.ended["s"].status == "error"


def test_bare_names_resolve_args_then_ctx_then_results_then_workload() -> None:
    text = book(
        """
- step: s
  tool: {kind: noop}
  set: {ctx.b: ctx, ctx.c: ctx}
  next:
    arcs:
      - {step: t, args: {a: args, b: args}}
- step: t
  tool: {kind: noop}
  set: {ctx.seen: "{{ [a, b, c, s.v, d] }}"}
""",
        "workload: {a: workload, b: workload, c: workload, s: workload, d: workload}",
    )
    script = play(text, {"s": {"v": "result"}})
    assert script.state.ctx["seen"] == ["args", "args", "ctx", "result", "workload"]


def test_now_is_the_time_of_the_event_and_ids_are_the_same_again() -> None:
    text = book("- step: s\n  tool: {kind: noop}\n  set: {ctx.at: '{{ now() }}', ctx.id: '{{ gen_uuid() }}'}")
    one, two = play(text), play(text)
    assert one.state.ctx["at"].startswith("2027-01-15T08:00:00")
    assert one.state.ctx == two.state.ctx


def test_done_ok_and_fail_ask_for_steps() -> None:
    script = routed("""
  set: {ctx.seen: "{{ [done('s'), ok('s'), fail('s'), done('yes')] }}"}
  next: yes
""")
    assert script.state.ctx["seen"] == [False, False, False, False]
    after = routed("""
  next:
    arcs:
      - {step: yes, when: "{{ done('s') and ok('s') and not fail('s') and not done('yes') }}"}
""")
    assert went(after) == ["yes"]


def test_values_in_a_record_are_capped() -> None:
    script = routed("  next:\n    arcs:\n      - {step: yes, when: '{{ s.text == 1 }}'}", {"text": "x" * 5000})
    assert len(script.of("next.evaluated")[0].payload["arcs"][0]["read"]["s.text"]) < 300


def test_arcs_see_every_field_of_an_error() -> None:
    when = "{{ outcome.error.retryable == false and outcome.error.code == '' and outcome.error.details is none }}"
    script = routed(f'  next:\n    arcs:\n      - {{step: yes, when: "{when}"}}', failed("client_error", "no"))
    assert went(script) == ["yes"]


def test_a_write_to_an_iteration_that_is_over_is_left_out() -> None:
    scene = given(book("- step: s\n  tool: {kind: noop}\n  set: {iter.x: 1, ctx.y: 2}\n"))
    scene.when(done("s#1"))
    assert scene.state.ctx == {"y": 2}
    assert scene.state.status == "completed"


def test_a_remembered_routing_decides_like_the_first() -> None:
    """The router of `a` reads nothing, so its first routing serves the second round."""
    text = """
- step: a
  tool: {kind: noop}
  next: {spec: {mode: inclusive}, arcs: [{step: b}, {step: c}]}
- {step: b, tool: {kind: noop}, next: [{step: d}]}
- {step: c, tool: {kind: noop}, next: [{step: d}]}
- step: d
  tool: {kind: noop}
  set: {ctx.n: "{{ ctx.n | default(0) + 1 }}"}
  next: [{step: a, when: "{{ ctx.n < 3 }}"}]
"""
    script = play(book(text))
    assert [run.partition("#")[0] for run in script.runs()] == ["a", "b", "c", "d"] * 3
    evaluated = [event.payload for event in script.events if event.event_type == "next.evaluated"]
    forks = [payload for payload in evaluated if "fork" in payload]
    assert [payload["fork"] for payload in forks] == ["f1", "f2", "f3"]
    assert [{**payload, "fork": ""} for payload in forks] == [{**forks[0], "fork": ""}] * 3
    assert [list(payload) for payload in forks] == [["event", "arcs", "taken", "mode", "fork"]] * 3
