"""Rules about the net: position, message, and no false positives."""

from __future__ import annotations

import pytest

from tests.unit.dsl.rules.samples import Finding, diagnostics, message, report


def of_the_net(body: str) -> list[Finding]:
    return report(body, only="NOE4")


def test_only_the_head_of_what_never_runs_is_told() -> None:
    body = """\
    workflow:
      - { step: a, tool: { kind: noop } }
      - { step: b, tool: { kind: noop }, next: c }
      - { step: c, tool: { kind: noop }, next: d }
      - { step: d, tool: { kind: noop } }
      - { step: e, tool: { kind: noop }, next: d }
    """
    assert report(body) == [("NOE401", "b"), ("NOE401", "e")]
    assert "'c', 'd' after it" in diagnostics(body)[0].message


def test_a_cycle_that_nobody_enters_is_told_once() -> None:
    body = """\
    workflow:
      - { step: a, tool: { kind: noop } }
      - { step: b, tool: { kind: noop }, next: [{ step: c, when: "{{ ctx.more }}" }] }
      - { step: c, tool: { kind: noop }, next: b }
    """
    assert of_the_net(body) == [("NOE401", "b")]
    assert "only steps that never run" in message(body.replace("{{ ctx.more }}", "{{ b.more }}"))


@pytest.mark.parametrize(
    "change",
    [
        ("next: store", "nxt: store"),
        ("next: store", "next: stoer"),
        ("next: store", "next: { arcs: [{ stp: store }] }"),
        ("next: store", "when: true\n    next: nowhere"),
        ("tool: { kind: noop }\n        next: store", "tool: { kind: noop, next: store }"),
    ],
)
def test_a_mistake_in_routing_is_not_told_again_as_an_unreachable_step(change: tuple[str, str]) -> None:
    body = """\
    workflow:
      - { step: fetch, tool: { kind: noop }, next: store }
      - { step: store, tool: { kind: noop } }
    """
    assert of_the_net(body) == []
    assert of_the_net(body.replace(*change)) == []


@pytest.mark.parametrize(
    "root",
    ["executor: { spec: { entry_step: b } }", "executor: { spec: { final_step: b } }", "policy: { rollback: on_fail }"],
)
def test_entries_final_steps_and_compensations_need_no_arc(root: str) -> None:
    body = f"""\
    {root}
    workflow:
      - {{ step: a, tool: {{ kind: noop }}, compensate: b }}
      - {{ step: b, tool: {{ kind: noop }} }}
    """
    found = of_the_net(body)
    assert ("NOE401", "b") not in found


def test_steps_behind_ignored_arcs_are_told_by_the_arcs_alone() -> None:
    body = """\
    executor: { spec: { final_step: b } }
    workflow:
      - { step: a, tool: { kind: noop } }
      - { step: b, tool: { kind: noop }, next: c }
      - { step: c, tool: { kind: noop } }
    """
    assert report(body) == [("NOE413", "next")]


GATE = """\
    workload: {{ open: true }}
    workflow:
      - {{ step: a, tool: {{ kind: noop }}, spec: {{ policy: {{ admit: {{ rules: {rules} }} }} }} }}
    """


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ('[{ when: "{{ workload.open }}", then: { allow: false } }]', ["NOE402"]),
        ("[{ else: { allow: false } }]", ["NOE402"]),
        ("[{ when: false, then: { allow: true } }]", ["NOE402"]),
        (
            '[{ when: true, then: { allow: false } }, { when: "{{ workload.open }}", then: { allow: true } }]',
            ["NOE402", "NOE414"],
        ),
        ('[{ when: "{{ workload.open }}", then: { allow: true } }]', []),
        ("[{ when: true, then: { allow: true } }]", []),
        ('[{ when: "{{ workload.open }}", then: { allow: false } }, { else: { allow: true } }]', []),
    ],
)
def test_a_gate_must_be_able_to_allow(rules: str, expected: list[str]) -> None:
    assert [code for code, _ in of_the_net(GATE.format(rules=rules))] == expected


@pytest.mark.parametrize(
    "rules",
    [
        "[{ else: { allow: false } }, { when: true, then: { allow: true } }]",
        "[{ when: true, then: { alow: true } }]",
        "[{ when: true }]",
        "[{ when: workload.open, then: { allow: true } }]",
        '[{ when: "{{ workload.open == }}", then: { allow: true } }]',
        '[{ when: "{{ 1 > 2 }}", then: { allow: true } }]',
    ],
)
def test_a_gate_with_another_mistake_is_not_told_to_be_closed(rules: str) -> None:
    assert "NOE402" not in [code for code, _ in report(GATE.format(rules=rules))]
    assert report(GATE.format(rules=rules)) != []


def gate(condition: str, before: str = "", behind: str = "set: { ctx.go: true }") -> str:
    return f"""\
    workflow:
      - step: a
        tool: {{ kind: noop }}
        {before}
        next: b
      - step: b
        tool: {{ kind: noop }}
        spec: {{ policy: {{ admit: {{ rules: [{{ when: "{{{{ {condition} }}}}", then: {{ allow: true }} }}] }} }} }}
        next: c
      - step: c
        tool: {{ kind: noop }}
        {behind}
    """


def test_a_gate_that_waits_for_what_is_behind_it() -> None:
    assert report(gate("ctx.go and ctx.go != 'x'")) == [("NOE403", "ctx.go")]
    assert report(gate("vars.go")) == [("NOE403", "vars.go")]
    assert report(gate("done('a') and ok('c')")) == [("NOE403", "c")]
    assert report(gate("done('b')")) == [("NOE403", "b")]
    assert report(gate("c.rows | length > 0")) == [("NOE403", "c")]


@pytest.mark.parametrize(
    "body",
    [
        gate("ctx.go", before="set: { ctx.go: 1 }"), gate("ctx.go", behind="set: { ctx.go: false }"),
        gate("ctx.go", behind="set: { ctx.other: true }"), gate("ctx.go is not defined"), gate("ctx.go or done('a')"),
        gate("ok('a')"), gate("done('c') or ctx.go"), gate("not done('c')"), gate("c is not defined or c.rows"),
        gate("c.rows | default([1])"), gate("ctx.go == 1 or event.name == 'signal.received'"), gate("ctx.signals.go"),
    ],
)  # fmt: skip
def test_a_gate_that_something_else_may_open(body: str) -> None:
    assert of_the_net(body) == []


def join(number: int, routes: str) -> str:
    return f"""\
    workload: {{ x: 1 }}
    workflow:
      - {{ step: start, tool: {{ kind: noop }}, next: {routes} }}
      - {{ step: a, tool: {{ kind: noop }}, next: [b, c] }}
      - {{ step: b, tool: {{ kind: noop }}, next: end }}
      - {{ step: c, tool: {{ kind: noop }}, next: end }}
      - {{ step: end, tool: {{ kind: noop }}, spec: {{ join: {number} }} }}
    """


@pytest.mark.parametrize(
    ("routes", "most"),
    [
        ("a", 2),
        ("[a, end]", 3),
        ("[a, a]", 3),
        ('[{ step: a }, { step: end, when: "{{ workload.x }}" }]', 2),
        ('{ spec: { mode: inclusive }, arcs: [{ step: a }, { step: end, when: "{{ workload.x }}" }] }', 3),
        (
            "{ spec: { mode: inclusive }, arcs: [{ step: a }, { step: end, when: \"{{ event.name == 'step.failed' }}\" }] }",
            2,
        ),
    ],
)
def test_a_join_gets_at_most_what_forks_can_send(routes: str, most: int) -> None:
    enough = [found for found in of_the_net(join(most, routes)) if found.code == "NOE404"]
    assert enough == []
    assert ("NOE404", str(most + 1)) in of_the_net(join(most + 1, routes))


def test_a_fork_in_a_cycle_may_send_any_number() -> None:
    body = """\
    workflow:
      - { step: a, tool: { kind: noop }, next: { spec: { mode: inclusive }, arcs: [{ step: a, when: "{{ a.more }}" }, { step: b }] } }
      - { step: b, tool: { kind: noop }, spec: { join: 9 } }
    """
    assert of_the_net(body) == []


def cycle(arcs: str, step: str = "", root: str = "") -> str:
    return f"""\
    executor: {{ spec: {{ {root} }} }}
    workflow:
      - {{ step: a, tool: {{ kind: noop }}, next: b }}
      - step: b
        tool: {{ kind: noop }}
        {step}
        next: {arcs}
      - {{ step: out, tool: {{ kind: noop }} }}
    """


@pytest.mark.parametrize(
    "arcs",
    [
        "[{ step: a }, { step: out }]",
        "[a, out]",
        "[{ step: a, when: \"{{ event.name == 'step.done' }}\" }, { step: out }]",
        "[{ step: a, when: true }, { step: out, when: true }]",
        '{ spec: { mode: inclusive }, arcs: [{ step: a }, { step: out, when: "{{ b.done }}" }] }',
    ],
)
def test_a_cycle_that_is_never_left(arcs: str) -> None:
    assert ("NOE405", "a") in of_the_net(cycle(arcs))


@pytest.mark.parametrize(
    "body",
    [
        cycle('[{ step: out, when: "{{ b.done }}" }, { step: a }]'),
        cycle('[{ step: a, when: "{{ b.more }}" }, { step: out }]'),
        cycle('[{ step: a, when: "{{ b.more }}" }]'),
        cycle("[{ step: a }, { step: out, when: \"{{ event.name == 'step.failed' }}\" }]"),
        cycle("[{ step: a }]", root="timeout_s: 60"),
        cycle(
            "[{ step: a }]",
            step="spec: { policy: { admit: { rules: [{ when: '{{ ctx.go }}', then: { allow: true } }] } } }",
        ),
        cycle("[{ step: a }]", step="spec: { join: 2 }"),
        cycle("[{ step: a, when: \"{{ event.name == 'step.ended' }}\" }]"),
        cycle("[{ step: a }]", root="final_step: a"),
    ],
)
def test_a_cycle_with_a_way_out(body: str) -> None:
    assert "NOE405" not in [code for code, _ in report(body)]


def test_a_leaf_with_an_arc_for_failures_only_is_fine() -> None:
    body = """\
    workflow:
      - { step: a, tool: { kind: noop }, next: [{ step: b, when: "{{ event.name == 'step.failed' }}" }] }
      - { step: b, tool: { kind: noop } }
    """
    assert report(body) == []
    assert report(body.replace("workflow:", "executor: { spec: { no_next_is_error: true } }\n    workflow:")) == [
        ("NOE406", "next")
    ]


def test_a_missing_arc_for_success_is_told_at_the_last_router_above_the_step() -> None:
    body = """\
    workflow:
      - { step: a, tool: { kind: noop }, next: [{ step: b }, { step: c, when: "{{ event.name == 'step.failed' }}" }] }
      - { step: b, tool: { kind: noop }, next: [{ step: c, when: "{{ outcome.status == 'error' }}" }] }
      - { step: c, tool: { kind: noop } }
      - { step: d, tool: { kind: noop } }
    """
    assert report(body) == [("NOE406", "next")]
    assert "'d' never runs" in message(body)
    assert diagnostics(body)[0].line == 6


def test_a_step_setting_wins_over_the_executor() -> None:
    body = """\
    executor: { spec: { on_step_fail: continue } }
    workflow:
      - { step: a, tool: { kind: noop }, next: [{ step: b, when: "{{ outcome.status == 'ok' }}" }] }
      - { step: b, tool: { kind: noop } }
    """
    assert report(body) == [("NOE407", "next")]
    assert report(body.replace("step: a,", "step: a, spec: { on_step_fail: halt },")) == []
    assert report(body.replace("tool: { kind: noop }, next", "next")) == [], "a step without a tool does not fail"


def arcs(*found: str, mode: str = "exclusive") -> str:
    return f"""\
    workload: {{ x: 1 }}
    workflow:
      - {{ step: a, tool: {{ kind: noop }}, next: {{ spec: {{ mode: {mode} }}, arcs: [{", ".join(found)}] }} }}
      - {{ step: b, tool: {{ kind: noop }} }}
      - {{ step: c, tool: {{ kind: noop }} }}
    """


X = '{{ step: {to}, when: "{{{{ workload.x }}}}" }}'
FAILED = "{ step: c, when: \"{{ event.name == 'step.failed' }}\" }"


@pytest.mark.parametrize(
    ("body", "dead"),
    [
        (arcs("{ step: b }", X.format(to="c")), True),
        (arcs("{ step: b }", "{ step: c }"), True),
        (arcs("{ step: b, when: true }", FAILED), True),
        (arcs(X.format(to="b"), X.format(to="c")), True),
        (arcs("{ step: b }", "{ step: c, when: \"{{ event.name == 'loop.done' }}\" }"), True),
        (
            arcs("{ step: b }", "{ step: c, when: \"{{ outcome.status == 'ok' and outcome.status == 'error' }}\" }"),
            True,
        ),
        (arcs("{ step: b }", FAILED), False),
        (arcs("{ step: b }", "{ step: c, when: \"{{ fail('a') }}\" }"), False),
        (arcs(X.format(to="b"), "{ step: c }"), False),
        (arcs("{ step: b }", X.format(to="c"), mode="inclusive"), False),
        (arcs("{ step: b }", "{ step: c, when: false }"), False),
        (arcs("{ step: b, when: false }", "{ step: c }"), False),
    ],
)
def test_arcs_that_can_never_be_taken(body: str, dead: bool) -> None:
    assert of_the_net(body) == ([("NOE409", "c")] if dead else [])


def test_a_loop_ends_with_its_own_event() -> None:
    body = arcs("{ step: b }", "{ step: c, when: \"{{ event.name == 'loop.done' }}\" }", mode="inclusive")
    assert "has none" in message(body)
    looping = body.replace("tool: { kind: noop }", "tool: { kind: noop }, loop: { in: [1] }", 1)
    assert report(looping) == []


@pytest.mark.parametrize(
    "when", ["{{ outcome.status == 'success' }}", "{{ event.name == 'step.success' }}", "workload.x"]
)
def test_a_condition_that_is_told_elsewhere_makes_no_dead_arc(when: str) -> None:
    body = arcs(f'{{ step: b, when: "{when}" }}', "{ step: c }")
    assert of_the_net(body) == []
    assert len(report(body)) == 1


def fork(left: str, right: str, meet: str = "", arcs: str = "[b, c]") -> str:
    return f"""\
    workload: {{ x: 1 }}
    workflow:
      - {{ step: a, next: {arcs} }}
      - {{ step: b, tool: {{ kind: noop }}, set: {{ {left} }}, next: d }}
      - {{ step: c, tool: {{ kind: noop }}, set: {{ {right} }}, next: d }}
      - {{ step: d, tool: {{ kind: noop }}, set: {{ {meet} }} }}
    """


@pytest.mark.parametrize(
    ("body", "clash"),
    [
        (fork("ctx.k: 1", "ctx.k: 2"), True),
        (fork("ctx.k: 1", "vars.k: 2"), True),
        (fork("ctx.k: '{{ b }}'", "ctx.k: '{{ c }}'"), True),
        (fork("ctx.k: 1", "ctx.k: 1"), False),
        (fork("ctx.k: '{{ workload.x }}'", "ctx.k: '{{ workload.x }}'"), False),
        (fork("ctx.k: 1", "ctx.other: 2"), False),
        (fork("ctx.k: 1", "", meet="ctx.k: 2"), False),
        (fork("ctx.k: 1", "ctx.k: 2", arcs='[{ step: b, when: "{{ workload.x }}" }, { step: c }]'), False),
    ],
)
def test_branches_of_a_fork_write_keys_of_their_own(body: str, clash: bool) -> None:
    assert [code for code, _ in of_the_net(body)] == (["NOE412"] if clash else [])


def test_a_branch_that_leads_back_to_its_fork_is_left_alone() -> None:
    body = fork("ctx.k: 1", "ctx.k: 2").replace("next: d }", 'next: [{ step: a, when: "{{ ctx.k }}" }, { step: d }] }')
    assert "NOE412" not in [code for code, _ in report(body)]


def test_arcs_to_a_final_step_are_fine_but_their_args_are_lost() -> None:
    body = """\
    executor: { spec: { final_step: b } }
    workflow:
      - { step: a, tool: { kind: noop }, next: [{ step: b, args: { x: 1 } }] }
      - { step: b, tool: { kind: noop } }
    """
    assert report(body) == [("NOE413", "args")]
    assert report(body.replace(", args: { x: 1 }", "")) == []


def test_a_compensation_that_is_also_a_step_of_the_flow_may_lead_on() -> None:
    body = """\
    policy: { rollback: on_fail }
    workflow:
      - { step: a, tool: { kind: noop }, compensate: undo, next: [{ step: undo, when: "{{ a.undo }}" }, { step: b }] }
      - { step: undo, tool: { kind: noop }, next: b }
      - { step: b, tool: { kind: noop } }
    """
    assert report(body) == []
