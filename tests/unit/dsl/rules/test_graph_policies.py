"""Rules about policies and loops: errors, dead rules, jumps and writes."""

from __future__ import annotations

import pytest

from tests.unit.dsl.rules.samples import Finding, report


def of_the_net(body: str) -> list[Finding]:
    return report(body, only="NOE4")


def policy(rules: str, kind: str = "http", beside: str = "") -> str:
    fields = {"http": "url: u", "noop": "message: x", "sleep": "seconds: 1"}[kind]
    return f"""\
    workflow:
      - {{ step: a, tool: {{ kind: {kind}, {fields}, spec: {{ policy: {{ rules: [{rules}] {beside} }} }} }} }}
    """


OKAY = "{ when: \"{{ outcome.status == 'ok' }}\", then: { do: continue } }"


@pytest.mark.parametrize(
    ("rule", "swallows"),
    [
        ("{ when: \"{{ outcome.status == 'error' }}\", then: { do: fail } }", False),
        ("{ when: \"{{ outcome.status != 'ok' }}\", then: { do: fail } }", False),
        ("{ when: \"{{ not outcome.status == 'ok' }}\", then: { do: fail } }", False),
        ('{ when: "{{ outcome.error }}", then: { do: fail } }', False),
        ('{ when: "{{ output.error is defined }}", then: { do: fail } }', False),
        ("{ when: true, then: { do: continue } }", False),
        ("{ else: { do: continue } }", False),
        ('{ when: "{{ outcome.error.retryable }}", then: { do: retry, attempts: 2 } }', True),
        ('{ when: "{{ outcome.http.status >= 400 }}", then: { do: fail } }', True),
        ("{ when: \"{{ outcome.error.kind == 'timeout' }}\", then: { do: fail } }", True),
        ("{ when: \"{{ outcome.status == 'error' and _attempt < 3 }}\", then: { do: retry, attempts: 3 } }", True),
    ],
)
def test_every_error_must_meet_a_rule(rule: str, swallows: bool) -> None:
    body = policy(f"{OKAY}, {rule}")
    assert report(body) == ([("NOE408", "rules")] if swallows else [])
    assert report(policy(f"{OKAY}, {rule}", beside=", on_unmatched: fail")) == []


def test_rules_that_split_errors_cover_them() -> None:
    split = (
        '{ when: "{{ outcome.error.retryable }}", then: { do: retry, attempts: 2 } },'
        " { when: \"{{ outcome.status == 'error' and not outcome.error.retryable }}\", then: { do: fail } }"
    )
    assert report(policy(split)) == []


@pytest.mark.parametrize("kind", ["noop", "sleep"])
def test_kinds_that_do_not_fail_need_no_rule_for_errors(kind: str) -> None:
    assert report(policy(OKAY, kind=kind)) == []


@pytest.mark.parametrize("when", ["outcome.status", "{{ outcome.status == }}"])
def test_a_condition_that_is_none_is_not_told_to_miss_errors(when: str) -> None:
    body = policy(f'{{ when: "{when}", then: {{ do: fail }} }}')
    assert of_the_net(body) == []


def loop(writes: str, spec: str = "mode: parallel") -> str:
    return f"""\
    workload: {{ items: [1], x: 1 }}
    workflow:
      - step: a
        loop: {{ in: "{{{{ workload.items }}}}", iterator: item, spec: {{ {spec} }} }}
        tool:
          - {{ name: get, kind: http, url: u, set: {{ {writes} }} }}
    """


@pytest.mark.parametrize(
    ("value", "differs"),
    [
        ("{{ iter.item }}", True), ("{{ item }}", True), ("{{ iter.index }}", True), ("{{ output.data.x }}", True),
        ("{{ get.data }}", True), ("{{ ctx.k + 1 }}", True), ("{{ now() }}", True), ("{{ workload.x }}", False),
        ("{{ iter.total }}", False), ("{{ execution_id }}", False), ("done", False),
    ],
)  # fmt: skip
def test_items_of_a_parallel_loop_agree_on_what_they_write(value: str, differs: bool) -> None:
    body = loop(f'ctx.k: "{value}"')
    assert of_the_net(body) == ([("NOE410", "ctx.k")] if differs else [])
    assert of_the_net(loop(f'ctx.k: "{value}"', spec="mode: parallel, reduce: { ctx.k: last }")) == []
    assert of_the_net(loop(f'ctx.k: "{value}"', spec="mode: sequential")) == []


def test_a_reducer_of_a_map_covers_its_keys() -> None:
    assert of_the_net(loop('ctx.k.a: "{{ iter.item }}"', spec="mode: parallel, reduce: { ctx.k: merge }")) == []
    assert of_the_net(loop('ctx.k.a: "{{ iter.item }}"', spec="mode: parallel, reduce: { ctx.k.a: last }")) == []


def test_the_writes_of_a_step_at_its_end_do_not_compete() -> None:
    body = """\
    workflow:
      - step: a
        loop: { in: [1, 2], iterator: item, mode: parallel }
        tool: { kind: noop }
        set: { ctx.all: "{{ a.results }}" }
    """
    assert report(body) == []


@pytest.mark.parametrize(
    ("first", "second", "dead"),
    [
        ("outcome.status == 'error'", "outcome.status == 'error' and outcome.error.retryable", True),
        ("outcome.status == 'error' and outcome.error.retryable", "outcome.status == 'error'", False),
        ("outcome.http.status == 404", "outcome.http.status == 404", True),
        ("outcome.http.status == 404", "outcome.http.status == 410", False),
    ],
)
def test_rules_go_from_narrow_to_broad(first: str, second: str, dead: bool) -> None:
    rules = ", ".join(f'{{ when: "{{{{ {when} }}}}", then: {{ do: break }} }}' for when in (first, second))
    found = [code for code, _ in report(policy(rules, beside=", on_unmatched: fail"))]
    assert found == (["NOE414"] if dead else [])


def test_a_failure_after_the_last_retry_may_be_spelled_out() -> None:
    error = "{{ outcome.status == 'error' }}"
    rules = f'{{ when: "{error}", then: {{ do: retry, attempts: 2 }} }}, {{ when: "{error}", then: {{ do: fail }} }}'
    assert report(policy(rules)) == []
    assert [code for code, _ in report(policy(rules.replace("do: fail", "do: skip")))] == ["NOE414"]


def pipeline(*rules: str) -> str:
    tasks = "\n".join(
        f"          - t{number}: {{ kind: http, url: u, spec: {{ policy: {{ on_unmatched: fail, rules: [{rule}] }} }} }}"
        for number, rule in enumerate(rules)
    )
    return f"    workflow:\n      - step: a\n        tool:\n{tasks}\n"


GO_ON = "{ else: { do: continue } }"
FAIL = "{ when: \"{{ outcome.status == 'error' }}\", then: { do: fail } }"
NO_MORE = '{ when: "{{ outcome.result.last }}", then: { do: break } }'


@pytest.mark.parametrize(
    ("rules", "pointed"),
    [
        ((GO_ON, "{ else: { do: jump, to: t0 } }"), "t0"),
        ((GO_ON, "{ else: { do: jump, to: previous } }"), "previous"),
        ((f"{FAIL}, {{ else: {{ do: jump, to: t0 }} }}",), "t0"),
        ((f"{NO_MORE}, {{ else: {{ do: jump, to: t0 }} }}",), None),
        ((NO_MORE + ", " + GO_ON, "{ else: { do: jump, to: t0 } }"), None),
        (("{ else: { do: jump, to: t1 } }", GO_ON), None),
        (('{ when: "{{ outcome.result.more }}", then: { do: jump, to: t0 } }',), None),
        (("{ else: { do: jump, to: t9 } }",), None),
    ],
)
def test_a_jump_back_needs_a_way_out(rules: tuple[str, ...], pointed: str | None) -> None:
    found = [found for found in report(pipeline(*rules)) if found.code == "NOE415"]
    assert found == ([("NOE415", pointed)] if pointed else [])


@pytest.mark.parametrize(
    ("rules", "fails"),
    [
        ('{ when: "{{ outcome.error.retryable }}", then: { do: retry } }, { else: { do: fail } }', True),
        (FAIL + ", { else: { do: fail } }", True),
        (FAIL + ", { else: { do: continue } }", False),
        (NO_MORE + ", { else: { do: fail } }", False),
        ("{ else: { do: fail } }", False),
        ("{ else: { do: retry, attempts: 3 } }", True),
        (FAIL + ", { else: { do: retry, attempts: 3 } }", True),
    ],
)
def test_a_success_must_be_able_to_go_on(rules: str, fails: bool) -> None:
    assert [code for code, _ in report(policy(rules))] == (["NOE416"] if fails else [])


def test_a_task_that_raises_a_failure_is_left_alone() -> None:
    rules = '{ when: "{{ workload.x }}", then: { do: fail } }, { else: { do: fail } }'
    assert "NOE416" not in [code for code, _ in report(policy(rules, kind="noop"))]
