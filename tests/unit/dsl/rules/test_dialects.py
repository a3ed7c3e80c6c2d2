"""Rules about older spellings: one notice per file; errors for the others."""

from __future__ import annotations

import pytest

from tests.unit.dsl.rules.samples import HEAD, checked, codes, marked, with_step

NOOP = "tool: { kind: noop }\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (HEAD + "«steps»:\n  - name: a\n    type: http\n    url: https://example.org\n", ["NOE801"]),
        (with_step("«type»: noop"), ["NOE801"]),
        (with_step("«type»: iterator\ncollection: [1]\nelement: e\ntask: { type: noop }"), ["NOE801"]),
        (with_step(NOOP + "«pass»: true"), ["NOE801"]),
        (with_step(NOOP + "case: [«{ when: '{{ ctx.a | default(1) }}', then: { next: work } }»]"), ["NOE802"]),
        (with_step(NOOP + "«when»: '{{ workload.run }}'"), ["NOE802"]),
        (with_step("loop: { «items»: [1], element: e }\n" + NOOP), ["NOE802"]),
        (with_step("tool: { kind: http, url: https://example.org, «retry»: { max_attempts: 3 } }"), ["NOE802"]),
    ],
)
def test_all_forms_of_a_file_are_one_notice_at_the_first(text: str, wanted: list[str]) -> None:
    assert marked(text) == (text, wanted)


def test_forms_of_both_dialects_are_one_notice() -> None:
    (found,) = checked(with_step("type: noop\nvars: { a: 1 }"))
    assert (found.code, found.severity) == ("NOE801", "hint")
    assert "the first and the second dialect in 2 places (typed-step, vars)" in found.message
    assert "`noetl upgrade FILE`" in found.fix


def test_a_mistake_in_an_older_form_is_told_where_it_is_written() -> None:
    text = with_step(NOOP + "case: [{ when: true, then: { next: «gone» } }]")
    found = [one for one in checked(text.replace("«", "").replace("»", "")) if one.severity == "error"]
    assert [(one.code, one.line, one.column) for one in found] == [("NOE201", 7, 40)]


def test_values_that_an_older_form_kept_may_be_read() -> None:
    text = with_step(NOOP + "vars: { total: '{{ result.total }}' }\nnext: later")
    text += "  - step: later\n    tool: { kind: noop, message: '{{ vars.total }} {{ ctx.total }}' }\n"
    assert codes(text) == ["NOE802"]


@pytest.mark.parametrize(
    ("body", "reason", "fix"),
    [
        ("command: echo", "nothing says what runs it", "`type: shell`"),
        (NOOP + "sink: { table: a }", "A sink without a tool", "`sink: { tool: { kind: … } }`"),
        (NOOP + "case: [{ when: true, then: { fail: 1 } }]", "`fail` of a rule of `case`", "`spec.policy`"),
        (NOOP + "vars: [a]", "`vars` is a map", "`vars: { <name>: … }`"),
        (NOOP + "retry: [{ then: { next_call: { params: { a: 1 } } } }]", "Pages need a condition", "`when:"),
    ],
)
def test_what_has_no_equivalent_is_an_error_that_says_why(body: str, reason: str, fix: str) -> None:
    (found,) = [one for one in checked(with_step(body)) if one.severity == "error"]
    assert found.code == "NOE803"
    assert reason in found.message
    assert fix in found.fix


def test_a_key_of_today_wins_over_an_older_form_of_the_same_name() -> None:
    assert codes(with_step("tool: { kind: python, code: result = 1 }\ncode: result = 2")) == ["NOE102"]
    assert codes(with_step("tool: { kind: noop }\nname: work")) == ["NOE101"]
