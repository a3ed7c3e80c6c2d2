"""Operators say which types they do not support."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from noetl.expr import BudgetExceeded, Undefined
from noetl.expr.runtime.value_types import kind_of
from tests.unit.expr.evaluating import error_of, value_of

MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (True, "a boolean"),
        (1, "a number"),
        (1.5, "a number"),
        ("", "a string"),
        ([], "a list"),
        ((), "a list"),
        ({}, "a map"),
        (None, "null"),
        (MOMENT, "a date"),
        (date(2024, 1, 1), "a date"),
        (timedelta(1), "a duration"),
        (Undefined(("a",)), "an undefined value"),
        (object(), "a value of an unknown type"),
    ],
)
def test_kinds_in_words(value: Any, word: str) -> None:
    assert kind_of(value) == word


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1 + 'a'", "`+` does not support a number and a string"),
        ("[1] + 'a'", "`+` does not support a list and a string"),
        ("{} - 1", "`-` does not support a map and a number"),
        ("'a' * 'b'", "`*` does not support a string and a string"),
        ("'a' * 1.5", "`*` does not support a string and a number"),
        ("none / 2", "`/` does not support null and a number"),
        ("'a' ** 2", "`**` does not support a string and a number"),
        ("[1] % 2", "`%` does not support a list and a number"),
        ("-'a'", "`-` does not support a string"),
        ("1 / 0", "`/` by zero"),
        ("1 // 0", "`//` by zero"),
        ("1 % 0", "`%` by zero"),
        ("0 ** -1", "is not a number"),
        ("(-8) ** 0.5", "not a real number"),
        ("1 < 'a'", "`<` cannot compare a number with a string"),
        ("'a' >= n", "`>=` cannot compare a string with a number"),
        ("none < n", "cannot compare"),
        ("1 in 5", "`in` does not support a number"),
        ("1 in 'a1'", "`in` cannot search for a number in a string"),
        ("moment < n", "cannot compare a date with a number"),
        ("moment + 1", "`+` does not support a date and a number"),
        ("moment + moment", "`+` on dates failed"),
        ("moment + timedelta(days=10**8)", "`+` on dates failed"),
        ("n[::0]", "must not be zero"),
        ("'abc'[::0]", "must not be zero"),
        ("{}[1:]", "cannot slice a map"),
        ("[1]['a':]", "must be an integer"),
        ("{[1]: 2}", "a key cannot be a list"),
    ],
)
def test_what_does_not_fit_is_named(expression: str, message: str) -> None:
    error = error_of(expression, n=1, moment=MOMENT)
    assert message in error.message
    assert error.offset is not None


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("true + 1", 2),
        ("timedelta(days=1) * 2", timedelta(days=2)),
        ("-timedelta(days=1)", timedelta(days=-1)),
        ("moment - moment", timedelta(0)),
        ("(moment + timedelta(days=1)) > moment", True),
        ("(1, 2) + (3,)", [1, 2, 3]),
        ("1 < 2 < 3", True),
        ("3 > 2 > 2", False),
        ("nope < 1 < 2", False),
        ("big == big", True),
        ("big == [1]", False),
        ("{'a': [1]} == {'a': [1]}", True),
        ("[1, 2] in [[1, 2]]", True),
        ("[1] in {'a': 1}", False),
        ("nope in 'abc'", False),
        ("nope in nope", False),
        ("'x' not in nope", True),
        ("nope == nope", False),
        ("nope != nope", True),
        ("[1, 2][5:]", []),
        ("nope[1:] is defined", False),
    ],
)
def test_value(expression: str, value: Any) -> None:
    assert value_of(expression, moment=MOMENT, big=list(range(1000))) == value


def test_numbers_stay_bearable() -> None:
    assert value_of("2 ** 14000") == 2**14000
    assert value_of("0 ** (10 ** 9) + 1 ** (10 ** 9) + (-1) ** (10 ** 9)") == 2
    for expression in ("2 ** 60000", "(2 ** 9000) * (2 ** 9000)", "x * x", "y + y", "-y - y", "10 ** 5000"):
        assert isinstance(error_of(expression, x=2**10000, y=2**14283 + 1), BudgetExceeded)
    assert len(value_of("10 ** 4299 ~ ''")) == 4300
