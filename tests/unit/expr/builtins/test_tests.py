"""Tests after `is`; see also test_differential.py."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.expr.evaluating import error_of, value_of


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[1, 2] is contains(2)", True),
        ("'abc' is contains('z')", False),
        ("{'a': 1} is contains('a')", True),
        ("nope is contains('a')", False),
        ("moment is date", True),
        ("'2024' is date", False),
        ("[[1], [2]] | select('contains', 2) | list", [[2]]),
        ("1 is sameas(1)", True),
        ("1 is sameas(1.0)", False),
        ("[1] is sameas([1])", True),
        ("upper is callable", False),
        ("moment is sequence", False),
        ("nope is iterable", True),
        ("4 is divisibleby(2) and 4 is not divisibleby(3)", True),
        ("'map' is filter and 'mapping' is test and 'mapping' is not filter", True),
        ("5 is filter", False),
        ("true is boolean and 1 is not boolean", True),
    ],
)
def test_test(expression: str, value: Any) -> None:
    assert value_of(expression, moment=datetime(2024, 1, 1, tzinfo=UTC)) == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("'x' is odd", "a number, not a string"),
        ("4 is divisibleby(0)", "divisible by zero"),
        ("4 is divisibleby('x')", "a number, not a string"),
        ("4 is in 5", "does not support a number"),
        ("4 is lt 'a'", "cannot compare"),
    ],
)
def test_what_does_not_fit_is_named(expression: str, message: str) -> None:
    assert message in error_of(expression).message
