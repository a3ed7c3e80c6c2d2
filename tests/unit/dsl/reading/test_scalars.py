"""What plain scalars mean by the YAML 1.2 core table."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.reading.scalars import (
    MAX_NUMBER_LENGTH,
    Value,
    is_oversize_number,
    resolve,
    resolve_tagged,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(text, None) for text in ("", "~", "null", "Null", "NULL")],
        *[(text, True) for text in ("true", "True", "TRUE")],
        *[(text, False) for text in ("false", "False", "FALSE")],
        ("0", 0),
        ("12", 12),
        ("+12", 12),
        ("-12", -12),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5e-3", -0.0005),
        ("1e3", 1000.0),
        ("685.230_15e+03", "685.230_15e+03"),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("+.Inf", math.inf),
        ("1e999", math.inf),
        *[(text, text) for text in ("yes", "no", "on", "off", "y", "n", "Yes", "tRUE", "nULL")],
        *[(text, text) for text in ("1_000", "1:30", "2024-01-01", "0b11", "-0x1", "+0o7", "0o8", "0xg", "0x", "0o")],
        *[(text, text) for text in (".", "-", "+", "+-1", "1e", "e5", "1 2", " 1", ".Nan", "١٢", "²", "1\n")],
    ],
)
def test_core_table(text: str, value: Value) -> None:
    found = resolve(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_not_a_number(text: str) -> None:
    found = resolve(text)
    assert isinstance(found, float)
    assert math.isnan(found)


@given(st.integers())
def test_every_integer_is_read_back(number: int) -> None:
    assert resolve(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_read_back(number: float) -> None:
    assert resolve(repr(number)) == number


@given(st.text())
def test_any_text_has_a_value(text: str) -> None:
    value = resolve(text)
    assert value is None or isinstance(value, bool | int | float) or value == text


def test_a_number_at_the_limit_is_a_number_and_one_beyond_it_a_text() -> None:
    at, beyond = "9" * MAX_NUMBER_LENGTH, "9" * (MAX_NUMBER_LENGTH + 1)
    assert resolve(at) == int(at)
    assert not is_oversize_number(at)
    assert resolve(beyond) == beyond
    assert is_oversize_number(beyond)
    assert is_oversize_number("0x" + "f" * 10_000)
    assert not is_oversize_number("x" * 10_000)


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        ("str", "12", "12"), ("str", "", ""), ("int", "12", 12), ("int", "0x10", 16), ("float", "12", 12.0),
        ("float", "0x10", 16.0), ("float", "9" * 400, math.inf), ("float", ".5", 0.5), ("bool", "true", True),
        ("null", "~", None), ("null", "", None),
    ],
)  # fmt: skip
def test_tagged(tag: str, text: str, value: Value) -> None:
    found = resolve_tagged(tag, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("int", "x"), ("int", "1.5"), ("int", "true"), ("float", "x"), ("float", "true"), ("bool", "yes"),
        ("bool", "1"), ("null", "x"),
    ],
)  # fmt: skip
def test_a_tag_that_does_not_fit_is_refused(tag: str, text: str) -> None:
    with pytest.raises(ValueError, match=tag):
        resolve_tagged(tag, text)
