"""What can be said of a flow before it runs: endings, arcs, gates and writes."""

from __future__ import annotations

from textwrap import dedent

import pytest

from noetl.dsl.analysis.flow import (
    CONTINUED,
    ERROR,
    FAILURE,
    LOOP_CONTINUED,
    LOOP_SUCCESS,
    OK,
    SUCCESS,
    Case,
    Missing,
    Truth,
    decided,
    writes,
)
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.playbook import Step
from noetl.expr import compile_template
from noetl.wiring.embedded import language_kinds

KINDS = language_kinds()
CASES = {"success": SUCCESS, "failure": FAILURE, "continued": CONTINUED, "loop": LOOP_SUCCESS, "ok": OK, "error": ERROR}


def subject(workflow: str, executor: str = "{}") -> CheckContext:
    return CheckContext(parse(f"executor: {executor}\nworkflow:\n{dedent(workflow)}", "flow.yaml"), KINDS)


def first(found: CheckContext) -> Step:
    return found.playbook.workflow[0]


@pytest.mark.parametrize(
    ("condition", "answers"),
    [
        ("event.name == 'step.done'", {"success": True, "failure": False, "continued": True, "loop": True}),
        ("event.name == 'call.done'", {"success": True, "failure": False, "loop": True}),
        ("event.name == 'step.exit'", {"success": True, "failure": False, "loop": True}),
        ("event.name == 'loop.done'", {"success": False, "failure": False, "loop": True}),
        ("event.name == 'step.failed'", {"success": False, "failure": True}),
        ("event.name == 'call.error'", {"success": False, "failure": True, "continued": False}),
        ("event.name != 'call.done'", {"success": False, "failure": True}),
        ("event.name in ['step.done', 'loop.done']", {"success": True, "failure": False, "loop": True}),
        ("event.name == 'step.done' or event.name == 'call.done'", {"success": True, "failure": False}),
        ("outcome.status == 'ok'", {"success": True, "failure": False, "continued": False, "ok": True, "error": False}),
        ("output.status == 'error'", {"success": False, "failure": True, "continued": True, "error": True}),
        ("outcome.status == 'error' and ctx.x", {"success": False, "failure": None, "ok": False, "error": None}),
        ("outcome.status == 'ok' or ctx.x", {"success": True, "failure": None}),
        ("outcome.error", {"failure": True, "error": True, "success": None, "ok": None}),
        ("outcome.error is defined and output.error is not none", {"error": True}),
        ("outcome.error.kind == 'timeout'", {"error": None, "failure": None}),
        ("outcome.error.retryable", {"error": None}),
        ("ctx.x", {"success": None, "failure": None}),
        ("event.name", {"ok": None}),
        ("1 > 2", {"success": False, "failure": False}),
        ("now() > 2", {"success": None}),
        # What never occurs was meant to be something else.
        ("outcome.status == 'success'", {"success": None, "failure": None}),
        ("event.name == 'step.ended'", {"success": None, "failure": None}),
        ("event.name == 'step.finished'", {"success": True, "failure": False}),
        ("outcome.error.retriable", {"error": None}),
    ],
)
def test_conditions_are_decided_by_the_ending(condition: str, answers: dict[str, Truth]) -> None:
    template = compile_template("{{ " + condition + " }}")
    assert {name: decided(template, CASES[name]) for name in answers} == answers


def test_an_error_may_be_known_to_be_retryable() -> None:
    template = compile_template("{{ outcome.status == 'error' and not output.error.retryable }}")
    assert decided(template, ERROR._replace(retryable=False)) is True
    assert decided(template, ERROR._replace(retryable=True)) is False


@pytest.mark.parametrize(
    ("executor", "step", "endings"),
    [
        ("{}", "- { step: a, tool: { kind: noop } }", (SUCCESS, FAILURE)),
        ("{}", "- { step: a, loop: { in: [1] }, tool: { kind: noop } }", (LOOP_SUCCESS, FAILURE)),
        ("{ spec: { on_step_fail: continue } }", "- { step: a }", (SUCCESS, FAILURE, CONTINUED)),
        ("{ spec: { on_step_fail: continue } }", "- { step: a, spec: { on_step_fail: halt } }", (SUCCESS, FAILURE)),
        (
            "{}",
            "- { step: a, loop: { in: [1] }, spec: { on_step_fail: continue } }",
            (LOOP_SUCCESS, FAILURE, LOOP_CONTINUED),
        ),
    ],
)
def test_endings_follow_the_loop_and_the_settings(executor: str, step: str, endings: tuple[Case, ...]) -> None:
    found = subject(step, executor)
    assert found.flow.endings(first(found)) == endings


ROUTER = """\
- step: a
  next:
    spec: {{ mode: {mode} }}
    arcs:
      - {{ step: b, when: "{{{{ ctx.x }}}}" }}
      - {{ step: c }}
      - {{ step: d, when: "{{{{ event.name == 'step.failed' }}}}" }}
      - {{ step: e, when: true }}
- step: b
- step: c
- step: d
- step: e
"""


@pytest.mark.parametrize(
    ("mode", "ending", "possible", "certain", "may_be_none"),
    [
        ("exclusive", SUCCESS, "bc", "", False), ("exclusive", FAILURE, "bd", "", False),
        ("exclusive", CONTINUED, "bc", "", False), ("inclusive", SUCCESS, "bce", "ce", False),
        ("inclusive", FAILURE, "bde", "de", False),
    ],
)  # fmt: skip
def test_a_router_takes_the_first_or_all(
    mode: str, ending: Case, possible: str, certain: str, may_be_none: bool
) -> None:
    found = subject(ROUTER.format(mode=mode))
    ways = found.flow.ways(first(found), ending)
    assert "".join(arc.step for arc in ways.possible) == possible
    assert "".join(arc.step for arc in ways.certain) == certain
    assert ways.may_be_none is may_be_none


def test_a_step_without_arcs_takes_none() -> None:
    found = subject("- { step: a, tool: { kind: noop } }")
    assert found.flow.ways(first(found), SUCCESS) == ((), (), True)


def test_a_labelled_arc_may_take_a_failure_that_is_routed_to_it() -> None:
    arcs = "- step: a\n  spec: { on_step_fail: 'route_edge:out' }\n  next: { arcs: [{ step: a, label: out }] }"
    found = subject(arcs)
    assert found.flow.fires(first(found), first(found).arcs[0], FAILURE) is None
    plain = subject(arcs.replace("route_edge:out", "halt"))
    assert plain.flow.fires(first(plain), first(plain).arcs[0], FAILURE) is False


@pytest.mark.parametrize(
    ("rules", "answer"),
    [
        ("[{ when: '{{ ctx.go }}', then: { allow: true } }]", (True, True)),
        ("[{ when: '{{ ctx.go }}', then: { allow: false } }]", (False, True)),
        ("[{ when: true, then: { allow: true } }]", (True, False)),
        ("[{ when: false, then: { allow: true } }]", (False, True)),
        ("[{ when: '{{ ctx.go }}', then: { allow: false } }, { else: { allow: true } }]", (True, True)),
        ("[{ else: { allow: true } }, { when: '{{ ctx.go }}', then: { allow: false } }]", (True, False)),
        ("[{ when: ctx.go, then: { allow: true } }]", (True, True)),
    ],
)
def test_a_gate_may_allow_or_deny(rules: str, answer: tuple[bool, bool]) -> None:
    found = subject(f"- step: a\n  tool: {{ kind: noop }}\n  spec: {{ policy: {{ admit: {{ rules: {rules} }} }} }}")
    assert found.flow.admission(first(found)) == answer


def test_without_a_gate_everybody_is_let_in() -> None:
    found = subject("- { step: a, tool: { kind: noop } }")
    assert found.flow.admission(first(found)) == (True, False)


@pytest.mark.parametrize(
    ("condition", "shut"),
    [
        ("ctx.go", True), ("vars.go == 'now'", True), ("ctx.go and ctx.other", True), ("ctx.go or ctx.other", False),
        ("ctx.go != 'stop'", False), ("not ctx.go", False), ("ctx.go is not defined", False), ("ctx.other", False),
    ],
)  # fmt: skip
def test_a_gate_may_be_shut_while_a_key_is_not_written(condition: str, shut: bool) -> None:
    gate = '{ policy: { admit: { rules: [{ when: "{{ ' + condition + ' }}", then: { allow: true } }] } } }'
    found = subject(f"- step: a\n  tool: {{ kind: noop }}\n  spec: {gate}")
    assert found.flow.admission(first(found), Missing(key="go")).may_allow is not shut


def test_writes_of_tasks_rules_steps_and_arcs_are_gathered() -> None:
    found = subject(
        """\
        - step: a
          tool:
            kind: http
            url: u
            set: { ctx.one: 1, iter.no: 1 }
            spec: { policy: { rules: [{ else: { do: continue, set_ctx: { two: 2 } } }] } }
          set: { three: 3, step.no: 1 }
          next: { arcs: [{ step: a, set: { ctx.four: 4 } }] }
        """
    )
    got = [(write.assign.key, write.in_task, write.arc is not None) for write in writes(first(found))]
    assert got == [("one", True, False), ("two", True, False), ("three", False, False), ("four", False, True)]
