"""Warnings: what an execution passed over is in its state."""

from __future__ import annotations

import pytest

from noetl.engine.state.execution import MOST_WARNINGS, Execution
from noetl.model.outcome import failed
from noetl.testing.play import Script, play
from tests.unit.engine.given import book

LEAF = "- {step: end, tool: {kind: noop}}\n"


def routed(arcs: str, head: str = "") -> Script:
    return play(book(f"- step: s\n  tool: {{kind: noop}}\n  next: {arcs}\n{LEAF}", head), {})


def test_a_branch_does_not_end_on_a_condition_that_cannot_be_evaluated() -> None:
    script = routed('[{step: end, when: "{{ 1 / 0 }}"}]')
    error = script.state.error or {}
    assert (script.status, error["kind"]) == ("failed", "template")
    assert "the condition of the arc from `s` to `end` cannot be evaluated, and no arc is taken" in error["message"]
    assert script.state.warnings == []  # it is the error


def test_another_arc_makes_it_a_warning() -> None:
    script = routed('[{step: s, when: "{{ 1 / 0 }}"}, {step: end}]')
    assert (script.status, script.runs()) == ("completed", ["s#1", "end#1"])
    [warning] = script.state.warnings
    assert (warning["step"], warning["seq"]) == ("s", script.of("next.evaluated")[0].seq)
    assert warning["message"].startswith("The condition of the arc to `s` cannot be evaluated, so it counts as false: ")


@pytest.mark.parametrize("place", ["executor", "arc"])
def test_written_out_it_ends_the_branch_with_a_warning(place: str) -> None:
    head = "executor: {spec: {on_when_error: treat_as_false}}" if place == "executor" else ""
    spec = ", spec: {on_when_error: treat_as_false}" if place == "arc" else ""
    script = routed(f'[{{step: end, when: "{{{{ 1 / 0 }}}}"{spec}}}]', head)
    assert (script.status, script.runs()) == ("completed", ["s#1"])
    assert [warning["step"] for warning in script.state.warnings] == ["s"]


def test_a_failed_step_keeps_its_own_error() -> None:
    text = f'- step: s\n  tool: {{kind: noop}}\n  next: [{{step: end, when: "{{{{ 1 / 0 }}}}"}}]\n{LEAF}'
    script = play(book(text), {"s": failed("timeout", "no answer")})
    assert (script.state.error or {})["kind"] == "timeout"
    assert len(script.state.warnings) == 1


def test_a_skipped_write_is_a_warning() -> None:
    text = f'- step: s\n  tool: {{kind: noop}}\n  set: {{ctx.x: "{{{{ s.value }}}}"}}\n  next: [{{step: end, when: "{{{{ event.name == \'step.failed\' }}}}"}}]\n{LEAF}'
    script = play(book(text), {"s": failed("timeout", "no answer")})
    assert script.status == "completed"
    assert [one["message"].partition(":")[0] for one in script.state.warnings] == ["`set"]


def test_the_same_warning_is_kept_once() -> None:
    text = """
- step: s
  tool: {kind: noop}
  set: {ctx.n: "{{ ctx.n | default(0) + 1 }}"}
  next: [{step: s, when: "{{ 1 / 0 }}"}, {step: s, when: "{{ ctx.n < 80 }}"}]
"""
    script = play(book(text))
    assert len(script.runs()) == 80
    assert [warning["step"] for warning in script.state.warnings] == ["s"]


def test_only_the_first_are_kept() -> None:
    state = Execution("1")
    for number in range(80):
        state.warn("s", f"warning {number}")
    assert [warning["message"] for warning in state.warnings] == [f"warning {n}" for n in range(MOST_WARNINGS)]
