"""Rules about reading: each problem has its code, position and no follow-ups."""

from __future__ import annotations

from typing import get_args

import pytest

from noetl.dsl.reading.problems import ProblemKind
from tests.unit.dsl.rules.samples import HEAD, checked, codes, marked, with_root, with_step

BODY = "workflow:\n  - step: work\n    tool: { kind: noop }\n"
DEEP = "[" * 101 + "]" * 101
BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in zip("abcde", "bcdef", strict=True)
)
BY_KIND: dict[str, tuple[str, str]] = {
    "syntax": ("NOE001", HEAD + "workload: { a: 1\n" + BODY),
    "tab": ("NOE002", HEAD + "workload:\n\ta: 1\n" + BODY),
    "duplicate-key": ("NOE003", HEAD + "workload: { a: 1, a: 2 }\n" + BODY),
    "bad-key": ("NOE004", HEAD + "workload: { ? [a] : 1 }\n" + BODY),
    "tag": ("NOE005", HEAD + "workload: { a: !secret b }\n" + BODY),
    "unknown-anchor": ("NOE006", HEAD + "workload: { a: *b }\n" + BODY),
    "recursive-alias": ("NOE007", HEAD + "workload: &w { a: *w }\n" + BODY),
    "alias-bomb": ("NOE007", BOMB),
    "too-large": ("NOE008", HEAD + f"workload: {{ a: {'9' * 501} }}\n" + BODY),
    "too-deep": ("NOE009", HEAD + f"workload: {{ a: {DEEP} }}\n" + BODY),
    "not-text": ("NOE010", HEAD + "workload: { a: '\x01' }\n" + BODY),
    "many-documents": ("NOE011", HEAD + BODY + "---\n" + HEAD + BODY),
    "empty": ("NOE012", ""),
    "not-a-map": ("NOE013", "just a text"),
    "legacy-boolean": ("NOE014", HEAD + "workload: { a: off }\n" + BODY),
}


@pytest.mark.parametrize("kind", get_args(ProblemKind))
def test_every_problem_of_the_reader_is_told_once_and_alone(kind: str) -> None:
    code, text = BY_KIND[kind]
    assert codes(text) == [code]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "workflow:\n  - step: work\n    tool: { kind: noop\n  - step: more\n",
        HEAD + "workflow:\n  - step: work\n     tool: { kind: noop }\n",
        'apiVersion: "noetl.io/v10\nkind: Playbook\n',
        HEAD + "workflow:\n  - step: work\n    next: later\n\t- step: later\n",
    ],
)
def test_what_stands_behind_a_break_is_not_missed(text: str) -> None:
    assert [code[:4] for code in codes(text)] == ["NOE0"]


def test_an_unquoted_template_does_not_end_the_reading() -> None:
    text = with_step("tool: { kind: noop }\nloop: { in: «{{ workload.list }}», iterator: item }\n«nxt»: other")
    shown, found = marked(text)
    assert shown == text
    assert found == ["NOE001", "NOE101"]


@pytest.mark.parametrize(("word", "meant"), [("yes", "true"), ("On", "true"), ("no", "false"), ("OFF", "false")])
def test_the_fix_of_an_old_boolean_names_the_new_one(word: str, meant: str) -> None:
    (found,) = checked(with_root(f"workload: {{ flag: {word} }}"))
    assert (found.code, found.severity) == ("NOE014", "warning")
    assert f"Write {meant}" in found.fix


@pytest.mark.parametrize(
    "value", ["'yes'", '"no"', "y", "n", "N", "yes and no", "[a, 'on']", "{ yes: 1, no: 2 }", "|\n    off"]
)
def test_words_that_nobody_takes_for_booleans_are_silent(value: str) -> None:
    assert codes(with_root(f"workload:\n  flag: {value}")) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (with_root("executor: { spec: { no_next_is_error: yes } }"), "NOE103"),
        (with_root("executor: { spec: { on_parked: no } }"), "NOE105"),
        (with_step("tool: { kind: noop, timeout: off }"), "NOE103"),
        (with_step("tool: { kind: noop }\nnext: [{ step: work, when: no }]"), "NOE014"),
    ],
)
def test_an_old_boolean_at_a_wrong_place_is_told_once(text: str, code: str) -> None:
    assert codes(text) == [code]


def test_a_lost_dash_is_one_mistake() -> None:
    text = HEAD + "workflow:\n  - step: work\n    tool: { kind: noop }\n    «step»: more\n    tool: { kind: noop }\n"
    shown, found = marked(text)
    assert (shown, found) == (text, ["NOE003"])
    assert "- step:" in checked(text.replace("«", "").replace("»", ""))[0].fix


def test_two_steps_may_each_repeat_a_key() -> None:
    step = "  - step: {}\n    desc: a\n    desc: b\n    tool: {{ kind: noop }}\n"
    text = HEAD + "workflow:\n" + step.format("one").replace("tool", "next: two\n    tool") + step.format("two")
    assert codes(text) == ["NOE003", "NOE003"]


def test_bytes_that_are_not_utf8_are_found_at_their_character() -> None:
    (found,) = checked((HEAD + "workload: { a: é }\n" + BODY).encode("latin-1"))
    assert (found.code, found.line, found.column) == ("NOE010", 4, 16)


# Values that a comma splits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "word", "fix"),
    [
        ("{ kind: noop, message: hello, world }", "world", '`message: "hello, world"`'),
        (
            "{ kind: postgres, auth: pg, query: select a, b, c from t }",
            "b, c from t",
            '`query: "select a, b, c from t"`',
        ),
        ('{ kind: noop, message: say "hi", twice }', "twice", "`message: 'say \"hi\", twice'`"),
        ("{ kind: noop, message: a, version }", "version", '`message: "a, version"`'),
    ],
)
def test_a_comma_that_splits_a_value_is_the_one_mistake(tool: str, word: str, fix: str) -> None:
    text = with_step(f"tool: {tool}")
    (found,) = checked(text)
    assert (found.code, found.severity) == ("NOE015", "error")
    assert text.split("\n")[found.line - 1][found.column - 1 : found.end.column - 1] == word
    assert "a comma ends a value" in found.message
    assert fix in found.fix


def test_a_comma_in_data_of_your_own_is_a_warning() -> None:
    (found,) = checked(with_root("workload: { greeting: hello, world }"))
    assert (found.code, found.severity, found.line) == ("NOE015", "warning", 4)


def test_a_comma_that_splits_a_value_is_tolerated_like_an_unknown_key() -> None:
    (found,) = checked(with_step("tool: { kind: noop, message: hello, world }"), tolerant=True)
    assert (found.code, found.severity) == ("NOE015", "warning")


@pytest.mark.parametrize(
    "body",
    [
        'workload: { greeting: "hello, world" }',
        "workload: { greeting: [hello, world] }",
        "workload: { greeting: hello, world: }",
        "workload: { greeting: hello, world: null }",
        "workload:\n  ? greeting\n  ? world",
    ],
)
def test_other_maps_split_no_value(body: str) -> None:
    assert codes(with_root(body)) == []
