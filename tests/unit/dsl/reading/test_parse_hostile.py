"""Hostile texts: each gets a problem, quickly and without a crash."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.reading.compose import MAX_DEPTH, MAX_PROBLEMS
from noetl.dsl.reading.nodes import MapNode, plain
from noetl.dsl.reading.parse import MAX_BYTES, MAX_NODES, parse

BILLION_LAUGHS = "a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
MERGE_BOMB = (
    "a0: &a0 {"
    + ", ".join(f"k{n}: 1" for n in range(900))
    + "}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10))
)
ALIAS_LADDER = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{x: {{y: *a{n - 1}}}}}\n" for n in range(1, 200))


def problem_kinds(text: str | bytes) -> list[str]:
    return [problem.kind for problem in parse(text).problems]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (BILLION_LAUGHS, "alias-bomb"),
        (MERGE_BOMB, "alias-bomb"),
        (ALIAS_LADDER, "too-deep"),
        ("a: " + "[" * 100_000, "too-deep"),
        ("a: " + "{a: " * 100_000, "too-deep"),
        ("a: " + "[" * 100_000 + "]" * 100_000, "too-deep"),
        ("- " * 100_000 + "a", "too-deep"),
        ("? " * 100_000 + "a", "too-deep"),
        ("a:\n" + "".join(" " * n + "a:\n" for n in range(1, 2_000)), "too-deep"),
        ("a: [" + "x," * (MAX_NODES + 1) + "]", "too-large"),
        ("a: [" + "[]," * (MAX_NODES + 1) + "]", "too-large"),
        ("a: " + "x" * MAX_BYTES, "too-large"),
        (b"a: " + b"x" * 10_000_000, "too-large"),
        ("a: " + "é" * (MAX_BYTES // 2), "too-large"),
        ("a: &a [*a]", "recursive-alias"),
        ("a: &a\n  b: &b [*a, *b]", "recursive-alias"),
        ("%TAG !a! x\n" * 50_000 + "---\na: 1\n", "tag"),
        ("a: 1\n...\n" + "%TAG !a! x\n" * 50_000, "many-documents"),
        ("a: \0\n", "not-text"),
        ("a: \ud800\n", "not-text"),
        ("a: \x1b[31m\n", "not-text"),
        ("a: \x7f\n", "not-text"),
        ("a: \ufffe\n", "not-text"),
        (b"a: \xff\n", "not-text"),
        (b"a: \xc3(\n", "not-text"),
        (b"a: \xed\xa0\x80\n", "not-text"),
        ("a: 1\n".encode("utf-16"), "not-text"),
        ("a: " + "1" * 10_000, "too-large"),
        ("a: 0x" + "f" * 10_000, "too-large"),
        ("a: -." + "1" * 10_000, "too-large"),
        ("? {a: b}\n: c\n", "bad-key"),
        ("k" * 2_000 + ": x\n", "syntax"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_is_refused(text: str | bytes, kind: str) -> None:
    assert problem_kinds(text) == [kind]


def test_an_alias_bomb_is_not_expanded_and_its_place_is_told() -> None:
    document = parse(BILLION_LAUGHS)
    assert document.root is None
    assert document.source.text[document.problems[0].start] == "*"


def test_depth_is_allowed_up_to_the_limit() -> None:
    fits = "a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    assert problem_kinds(fits) == []
    assert problem_kinds(fits.replace("[]", "[[]]")) == ["too-deep"]
    levels = "".join(" " * n + "a:\n" for n in range(MAX_DEPTH))
    assert problem_kinds(levels) == []
    assert problem_kinds(levels + " " * MAX_DEPTH + "a:\n") == ["too-deep"]


def test_depth_is_counted_through_aliases() -> None:
    deep = "a: &a " + "[" * 60 + "]" * 60 + "\nb: "
    assert problem_kinds(deep + "[" * 39 + "*a" + "]" * 39) == []
    assert problem_kinds(deep + "[" * 40 + "*a" + "]" * 40) == ["too-deep"]


def test_many_problems_are_cut_off() -> None:
    assert len(parse("a: [" + "{{ x }}, " * 100_000 + "]").problems) == MAX_PROBLEMS
    assert len(parse("a: 1\n" * 100_000).problems) == MAX_PROBLEMS


@pytest.mark.parametrize(
    "text",
    [
        "a: [" + "*x, " * 100_000 + "]",
        "a: " + "'" * 100_001,
        'a: "' + "\\x41" * 100_000 + '"',
        "a: " + "!" * 100_000,
        "a: " + "&a " * 100_000,
        "a: |\n" + " x\n\n" * 100_000,
        "a: >\n" + " x\n\n" * 100_000,
        "a: " + "x\n " * 100_000,
        "\n" * 100_000,
        "#" * 100_000,
        " " * 100_000 + "a: 1",
        "a: {" + "b, " * 100_000,
        "a: " + "{{" * 40 + "}}" * 40,
        '{"a": ' + '"\\ud83d\\ude00" ' * 10_000 + "}",
        "a: 1\n" + "---\n" * 100_000,
        "[a: " * 90 + "]" * 90,
    ],
    ids=lambda value: repr(value)[:24],
)
def test_is_answered(text: str) -> None:
    document = parse(text)
    assert document.root is not None or document.problems


def test_what_is_not_text_is_pointed_at() -> None:
    assert [(found.start, found.end) for found in parse(b"\xef\xbb\xbfa: 1\nb: \xc3\xa9\xff\n").problems] == [(9, 10)]
    assert parse(b"a: \xc3\xa9\xff\n").source.text == "a: é\ufffd\n"
    assert [(found.start, found.end) for found in parse("a: é\0\n").problems] == [(4, 5)]


def test_a_long_number_stays_a_text() -> None:
    document = parse("a: " + "1" * 10_000)
    assert plain(document.root) == {"a": "1" * 10_000}


@given(st.binary(max_size=200))
def test_any_bytes_are_answered(data: bytes) -> None:
    document = parse(data)
    assert isinstance(document.root, MapNode) or document.problems


@given(st.text(max_size=200))
def test_any_text_is_answered(text: str) -> None:
    document = parse(text)
    assert isinstance(document.root, MapNode) or document.problems
