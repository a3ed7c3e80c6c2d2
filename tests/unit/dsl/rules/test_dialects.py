"""Rules about older spellings: one diagnostic per form, with its replacement."""

from __future__ import annotations

import pytest

from tests.unit.dsl.rules.samples import HEAD, checked, codes, marked, with_step

NOOP = "tool: { kind: noop }\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (HEAD + "«steps»:\n  - «name»: a\n    «type»: http\n    url: https://example.org\n", ["NOE801"] * 3),
        (with_step("«type»: iterator\ncollection: [1]\nelement: e\ntask: { type: http }"), ["NOE801"]),
        (with_step("«call»: { type: workbook, name: t }\n«with»: { a: 1 }"), ["NOE801"] * 2),
        (with_step(NOOP + "«pass»: true"), ["NOE801"]),
        (with_step(NOOP + "«case»: [{ when: true, then: { next: gone } }]"), ["NOE802"]),
        (with_step(NOOP + "«when»: '{{ workload.run }}'"), ["NOE802"]),
        (with_step("loop: { «items»: [1], «element»: e }\n" + NOOP), ["NOE802"] * 2),
        (with_step(NOOP + "next: [{ when: '{{ ctx.a | default(1) }}', «then»: [{ step: gone }] }]"), ["NOE802"]),
        (with_step("tool: { kind: http, url: https://example.org, «retry»: { max_attempts: 3 } }"), ["NOE802"]),
    ],
)
def test_every_form_is_pointed_at_and_nothing_follows_from_it(text: str, wanted: list[str]) -> None:
    assert marked(text) == (text, wanted)


def test_a_step_that_only_an_older_form_leads_to_is_not_unreachable() -> None:
    text = with_step("case: [{ when: true, then: { next: later } }]") + "  - step: later\n    tool: { kind: noop }\n"
    assert codes(text) == ["NOE802"]


def test_values_that_an_older_form_kept_may_be_read() -> None:
    text = with_step(NOOP + "vars: { total: '{{ result.total }}' }\nnext: later")
    text += "  - step: later\n    tool: { kind: noop, message: '{{ vars.total }} {{ ctx.total }}' }\n"
    assert codes(text) == ["NOE802"]


@pytest.mark.parametrize(
    ("body", "did", "instead"),
    [
        ("type: http\nurl: a", "chose the tool", "`tool: {kind: …}`"),
        (NOOP + "sink: { table: a }", "wrote the result", "a separate task"),
        (NOOP + "vars: { a: 1 }", "kept values", "`set: {ctx.<name>: …}`"),
        ("loop: { collection: [1], iterator: e }\n" + NOOP, "gave the list", "`in: …`"),
    ],
)
def test_the_message_says_what_it_did_and_the_fix_what_to_write(body: str, did: str, instead: str) -> None:
    (found,) = checked(with_step(body))
    assert did in found.message
    assert instead in found.fix
    assert found.severity == "error"


def test_a_key_of_today_wins_over_an_older_form_of_the_same_name() -> None:
    assert codes(with_step("tool: { kind: python, code: result = 1 }\ncode: result = 2")) == ["NOE102"]
    assert codes(with_step("tool: { kind: noop }\nname: work")) == ["NOE101"]
