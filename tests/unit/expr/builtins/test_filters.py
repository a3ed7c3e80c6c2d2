"""Filters that Jinja2 does not have, and error messages of filters.

Those that Jinja2 has are compared with it in test_differential.py.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.unit.expr.evaluating import error_of, value_of

MOMENT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("' yes ' | bool", True),
        ("'True' | bool", True),
        ("'0' | bool", False),
        ("'no' | bool", False),
        ("'' | bool", False),
        ("2 | bool", True),
        ("none | bool", False),
        ("nope | bool", False),
        ("'a,b,c' | split(',')", ["a", "b", "c"]),
        ("'a,b,c' | split(',', 1)", ["a", "b,c"]),
        ("' a  b ' | split", ["a", "b"]),
        ('"it\'s" | quote', "'it'\"'\"'s'"),
        ("'plain-word_1.txt' | quote", "plain-word_1.txt"),
        ("'' | quote", "''"),
        ("'$(rm -rf)' | quote", "'$(rm -rf)'"),
        ("'x' | raw", "x"),
        ("[1] | raw", [1]),
    ],
)
def test_text_and_truth(expression: str, value: Any) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("{'a': 1, 'b': 2} | keys", ["a", "b"]),
        ("{'a': 1, 'b': 2} | values", [1, 2]),
        ("{'a': 1} | items", [["a", 1]]),
        ("nope | keys", []),
        ("{'a': 1} | combine({'b': 2}, {'a': 3})", {"a": 3, "b": 2}),
        ("{'a': {'x': 1}} | combine({'a': {'y': 2}})", {"a": {"y": 2}}),
        ("{'a': {'x': 1}} | combine({'a': {'y': 2}}, recursive=true)", {"a": {"x": 1, "y": 2}}),
        ("{'a': 1} | dict2items", [{"key": "a", "value": 1}]),
        ("[{'key': 'a', 'value': 1}] | items2dict", {"a": 1}),
        ("[{'k': 'a', 'v': 1}] | items2dict('k', 'v')", {"a": 1}),
        ("[1, [2, [3, []]]] | flatten", [1, 2, 3]),
        ("[1, [2, [3]]] | flatten(1)", [1, 2, [3]]),
        ("[1, 2, 2] | union([3, 1])", [1, 2, 3]),
        ("[1, 2, 2, 3] | intersect([2, 3, 4])", [2, 3]),
        ("[1, 2, 3] | difference([2])", [1, 3]),
        ("[{'a': 1}, {'a': 1}, {'b': 2}] | unique", [{"a": 1}, {"b": 2}]),
        ("[1, 2] | zip(['a', 'b', 'c'])", [[1, "a"], [2, "b"]]),
        ("true | ternary('a', 'b')", "a"),
        ("nope | ternary('a', 'b')", "b"),
        ("none | ternary('a', 'b', 'c')", "c"),
        ("[[1, 2], [3]] | sum(start=[])", [1, 2, 3]),
    ],
)  # fmt: skip
def test_lists_and_maps(expression: str, value: Any) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("{'b': [1, none], 'a': '<é>'} | tojson", '{"b": [1, null], "a": "<\\u00e9>"}'),
        ("'é' | to_json(ensure_ascii=false)", '"é"'),
        ("{'b': 1, 'a': 2} | tojson(sort_keys=true)", '{"a": 2, "b": 1}'),
        ("(1, 2) | tojson", "[1, 2]"),
        ("[moment, day] | tojson", '["2024-05-06T07:08:09+00:00", "2024-05-06"]'),
        ("'{\"a\": [1, null]}' | fromjson", {"a": [1, None]}),
        ("'5' | from_json", 5),
        ("'Ada é' | b64encode", "QWRhIMOp"),
        ("'QWRhIMOp' | b64decode", "Ada é"),
        ("'a' | hash", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        ("'a' | sha1", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        ("'a' | hash('md5')", "0cc175b9c0f1b6a831c399e269772661"),
        ("'a' | md5", "0cc175b9c0f1b6a831c399e269772661"),
        ("'a' | hash('sha256') == 'a' | sha256", True),
        ("('a' | hash('sha512')) | length", 128),
    ],
)
def test_notations(expression: str, value: Any) -> None:
    assert value_of(expression, moment=MOMENT, day=date(2024, 5, 6)) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'2024-05-06T07:08:09Z' | to_datetime", MOMENT),
        ("'2024-05-06T09:08:09+02:00' | to_datetime == moment", True),
        ("'2024-05-06 07:08:09' | to_datetime", MOMENT),
        ("'2024-05-06' | to_datetime", datetime(2024, 5, 6, tzinfo=UTC)),
        ("'06.05.2024' | to_datetime('%d.%m.%Y')", datetime(2024, 5, 6, tzinfo=UTC)),
        ("0 | to_datetime", datetime(1970, 1, 1, tzinfo=UTC)),
        ("day | to_datetime", datetime(2024, 5, 6, tzinfo=UTC)),
        ("moment | to_datetime == moment", True),
        ("moment | strftime('%Y/%m/%d')", "2024/05/06"),
        ("moment | strftime('%-d %B')", "6 May"),
        ("'2024-05-06' | strftime('%A')", "Monday"),
        ("86400 | strftime('%Y-%m-%d')", "1970-01-02"),
        ("day | strftime('%j')", "127"),
        ("moment | strftime('100%%')", "100%"),
        ("moment | strftime", "2024-05-06T07:08:09+0000"),
        ("moment | timestamp", MOMENT.timestamp()),
        ("moment | isoformat", "2024-05-06T07:08:09+00:00"),
        ("moment > day | to_datetime", True),
    ],
)
def test_dates(expression: str, value: Any) -> None:
    assert value_of(expression, moment=MOMENT, day=date(2024, 5, 6)) == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[1] | abs", "a number, not a list"),
        ("'x' | round", "a number, not a string"),
        ("1.5 | round(1, 'up')", "`common`, `ceil` or `floor`"),
        ("1.5 | round('x')", "`precision` must be an integer"),
        ("5 | list", "cannot iterate over a number"),
        ("none | join", "cannot iterate over null"),
        ("true | length", "a boolean has no length"),
        ("[1] | keys", "a map, not a list"),
        ("'x' | combine({})", "a map, not a string"),
        ("[1, 'a'] | sort", "cannot sort values of these types together: a number, a string"),
        ("[1, none] | max", "cannot sort values of these types"),
        ("[1] | batch(0)", "must be positive"),
        ("[1] | slice(0)", "must be positive"),
        ("'{' | fromjson", "not valid JSON"),
        ("[1] | fromjson", "a string, not a list"),
        ("'###' | b64decode", "not a Base64-encoded string"),
        ("'x' | hash('crc')", "unknown hash `crc`"),
        ("'x' | to_datetime", "not a date"),
        ("[1] | to_datetime", "not from a list"),
        ("1 | strftime('%Q%')", "not a date directive"),
        ("1 | strftime(5)", "must be a string"),
        ("'x' | filesizeformat", "must be a number"),
        ("'abc' | truncate(1)", "must be at least 3"),
        ("'abc' | wordwrap(0)", "must be positive"),
        ("'a' | split('')", "separator is empty"),
        ("'a' | split(1)", "separator must be a string"),
        ("'a' | center('x')", "`width` must be an integer"),
        ("[1] | map", "needs a filter or an attribute"),
        ("[1] | map(attribute='x', foo=1)", "`foo`"),
        ("[1] | map(f)", "unknown filter `uper`"),
        ("[1] | select(f)", "unknown test `uper`"),
        ("{'a': 1} | dictsort(by='x')", "`by` must be"),
        ("[1] | urlencode", "list of pairs"),
        ("[{'a': 1}] | items2dict", "is undefined"),
        ("[{'key': [1], 'value': 1}] | items2dict", "a key cannot be a list"),
        ("'a' | format(1)", "cannot format the string"),
        ("[1] | tojson(indent='x')", "`indent` must be an integer"),
    ],
)
def test_what_does_not_fit_is_named(expression: str, message: str) -> None:
    assert message in error_of(expression, f="uper").message


def test_a_misspelt_name_in_an_argument_gets_a_suggestion() -> None:
    assert "`upper`" in (error_of("[1] | map(f)", f="uper").fix or "")


def test_values_are_not_changed() -> None:
    data = {"list": [3, 1, 2], "map": {"a": {"b": 1}}}
    value_of("list | sort + list | reverse + list | batch(2, 0)", **data)
    value_of("map | combine({'a': {'c': 1}}, recursive=true)", **data)
    assert data == {"list": [3, 1, 2], "map": {"a": {"b": 1}}}
