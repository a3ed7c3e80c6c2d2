"""Methods of values, compared with Python's; none changes its value."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from noetl.expr.builtins.methods import METHODS
from tests.unit.expr.evaluating import error_of, value_of

MOMENT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'a'.startswith(['b', 'a'])", True),
        ("'a'.endswith(('b', 'c'))", False),
        ("'abc'.find('c', 1)", 2),
        ("'abc'.find('a', 1, 2)", -1),
        ("'a-b'.split(sep='-')", ["a", "b"]),
        ("'abc'.split(none)", ["abc"]),
        ("'a\\nb\\n'.splitlines(true)", ["a\n", "b\n"]),
        ("'Straße'.casefold()", "strasse"),
        ("'x'.join(['a', 'b'])", "axb"),
        ("'x'.join('abc')", "axbxc"),
        ("{'a': 1}.items()", [["a", 1]]),
        ("{'a': 1}.copy()", {"a": 1}),
        ("{'a': 1}.get(nums)", None),
        ("{'a': 1}.get('b')", None),
        ("m.get('a').b.get('c', 5)", 5),
        ("[1, 2, 1].count(1)", 2),
        ("[[1], [2]].index([2])", 1),
        ("moment.strftime('%Y')", "2024"),
        ("moment.isoformat()", "2024-05-06T07:08:09+00:00"),
        ("moment.timestamp()", MOMENT.timestamp()),
        ("moment.weekday()", 0),
        ("moment.date().isoformat()", "2024-05-06"),
        ("moment.year * 100 + moment.month", 202405),
        ("moment.date().day", 6),
        ("(moment - moment.date() | to_datetime).total_seconds()", 7 * 3600 + 8 * 60 + 9),
        ("(moment + timedelta(days=1)).day", 7),
        ("(moment - timedelta(hours=8)).day", 5),
        ("timedelta(days=1, hours=1).seconds", 3600),
    ],
)
def test_method(expression: str, value: Any) -> None:
    assert value_of(expression, moment=MOMENT, nums=[1], m={"a": {"b": {}}}) == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[1].upper()", "a list has no method `upper`"),
        ("5.5.split()", "a number has no method `split`"),
        ("'x'.keys()", "a string has no method `keys`"),
        ("none.items()", "null has no method `items`"),
        ("'x'.join([1])", "must be a string, not a number"),
        ("'x'.split('')", "separator is empty"),
        ("'x'.center(3, 'ab')", "one character"),
        ("'x'.index('y')", "does not contain `y`"),
        ("[1].index(2)", "does not contain the item"),
        ("'x'.replace('a')", "failed"),
        ("'x'.upper(1)", "failed"),
        ("'x'.startswith(1)", "must be a string"),
    ],
)
def test_what_does_not_fit_is_named(expression: str, message: str) -> None:
    assert message in error_of(expression).message


def test_no_method_changes_anything() -> None:
    changing = {
        "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem",
    }  # fmt: skip
    assert not changing & METHODS
    assert not any(name.startswith("_") for name in METHODS)


def test_methods_exist_only_where_they_are_called() -> None:
    assert value_of("x.items", x={"items": 5}) == 5
    assert value_of("x.items()", x={"items": 5}) == [["items", 5]]
    assert value_of("x.get is defined", x={}) is False
    assert value_of("'x'.upper is defined") is False
