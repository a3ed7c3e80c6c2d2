"""Regular expressions run on RE2."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.expr.evaluating import error_of, value_of


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (r"'a1b22' | regex_replace('\d+', '#')", "a#b#"),
        (r"'a1b22' | regex_replace('\d+', '#', count=1)", "a#b22"),
        (r"'ab' | regex_replace('(a)(b)', '\\2\\1')", "ba"),
        (r"'ab' | regex_replace('(?P<x>a)', '<\\g<x>>')", "<a>b"),
        (r"'ab' | regex_replace('(a)', '\\g<1>\\g<1>')", "aab"),
        (r"'Ab' | regex_replace('a', 'x')", "Ab"),
        (r"'Ab' | regex_replace('a', 'x', ignorecase=true)", "xb"),
        (r"'a\nb' | regex_replace('^', '> ', multiline=true)", "> a\n> b"),
        (r"'abc' | regex_replace('b')", "ac"),
        (r"'abc' | regex_replace('', '-')", "-a-b-c-"),
        (r"'é€x' | regex_replace('€', 'E')", "éEx"),
        (r"'a.b' | regex_replace('\\.', '\\n')", "a\nb"),
        (r"12345 | regex_replace('3', '-')", "12-45"),
        (r"'key=val' | regex_search('\w+$')", "val"),
        (r"'key=val' | regex_search('(\w+)=(\w+)', '\\1', '\\2')", ["key", "val"]),
        (r"'key=val' | regex_search('(\w+)=(?P<v>\w+)', 2, '\\g<v>')", ["val", "val"]),
        (r"'x' | regex_search('y')", None),
        (r"'x' | regex_search('y') is none", True),
        (r"'key=val' | regex_match('key')", "key"),
        (r"'key=val' | regex_match('val')", None),
        (r"'KEY' | regex_match('key', ignorecase=true)", "KEY"),
        (r"'a1b22' | regex_findall('\d+')", ["1", "22"]),
        (r"'a=1,b=2' | regex_findall('(\w)=(\d)')", [["a", "1"], ["b", "2"]]),
        (r"'a=1,b=2' | regex_findall('(\w)=')", ["a", "b"]),
        (r"'xx' | regex_findall('y')", []),
        (r"'a.b*c' | regex_escape", r"a\.b\*c"),
        (r"'a.b' | regex_replace('a.b' | regex_escape, 'x')", "x"),
        (r"'abc' is match('b')", False),
        (r"'abc' is match('a')", True),
        (r"'abc' is search('b')", True),
        (r"'abc' is regex('c$')", True),
        (r"'ABC' is search('b', ignorecase=true)", True),
        (r"['a1', 'b', 'c2'] | select('search', '\d') | list", ["a1", "c2"]),
        (r"['a1', 'b2'] | map('regex_replace', '\d', '') | list", ["a", "b"]),
        (r"nope | regex_replace('a', 'b')", ""),
    ],
)
def test_regex(expression: str, value: Any) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("'x' | regex_search('(')", "is not a regular expression"),
        ("'x' | regex_search('(?=x)')", "is not a regular expression"),
        (r"'x' | regex_search('(x)\\1')", "is not a regular expression"),
        ("'x' | regex_search(5)", "must be a string"),
        ("'x' | regex_search('a' * 10001)", "10,000 characters"),
        (r"'x' | regex_replace('x', '\\1')", "no group"),
        (r"'x' | regex_replace('x', '\\g<nope>')", "no group"),
        ("'x' | regex_search('((a{1000}){1000})')", "is not a regular expression"),
    ],
)
def test_a_bad_pattern_is_named(expression: str, message: str) -> None:
    assert message in error_of(expression).message


def test_what_re2_leaves_out_is_said() -> None:
    assert "look-around" in (error_of("'x' | regex_search('(?!x)')").fix or "")


def test_no_pattern_is_slow() -> None:
    # Exponential for a backtracking engine; here it is a few thousand steps.
    assert value_of("('a' * 5000) is match('(a+)+$')") is True
    assert value_of("('a' * 5000 ~ 'b') is match('(a+)+$')") is False
