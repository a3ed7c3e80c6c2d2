"""Formatting fills in values and reaches nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.expr.runtime.budget import Budget, Context
from noetl.expr.runtime.formatting import fill, percent
from tests.unit.expr.evaluating import error_of, value_of

MOMENT = datetime(2024, 5, 6, tzinfo=UTC)


def context() -> Context:
    return Context({}, Budget())


@given(st.lists(st.one_of(st.text(max_size=5), st.integers(), st.booleans(), st.none()), min_size=1, max_size=4))
def test_fields_are_filled_as_python_does(values: list[Any]) -> None:
    template = "-".join("{}" for _ in values) + "{0}"
    by_position = "".join(f"{{{index}}}" for index in range(len(values)))
    assert fill(context(), by_position, values, {}) == by_position.format(*values)
    assert fill(context(), template[:-3], values, {}) == template[:-3].format(*values)


@given(
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.sampled_from(["", ".2f", ">12", "+.1e", "010.3f", "%", ",.2f"]),
)
def test_numbers_are_formatted_as_python_does(value: float, spec: str) -> None:
    assert fill(context(), "{:" + spec + "}", [value], {}) == format(value, spec)


@given(st.one_of(st.text(max_size=5), st.integers(-99, 99)), st.sampled_from(["%s", "%5s|", "%-5s|", "%r", "%.2s"]))
def test_percent_is_filled_as_python_does(value: Any, template: str) -> None:
    assert percent(context(), template, value) == template % value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'{a}{b}'.format(a=1, b='x')", "1x"),
        ("'{{{0}}}'.format(5)", "{5}"),
        ("'{:*^7}'.format('a')", "***a***"),
        ("'{:>3}|{:<3}|'.format(1, 2)", "  1|2  |"),
        ("'{:x} {:#b}'.format(255, 5)", "ff 0b101"),
        ("'{:%d.%m.%Y}'.format(moment)", "06.05.2024"),
        ("'{}'.format([1, 'a'])", "[1, 'a']"),
        ("'{}'.format(nope)", ""),
        ("'{!r:>5}'.format('a')", "  'a'"),
        ("'%d%%' % 5", "5%"),
        ("'%s %s' % (1, [2])", "1 [2]"),
        ("'%s' % [[1, 2]]", "[[1, 2]]"),
        ("'%s' % {'a': 1}", "{'a': 1}"),
        ("'%(a)s' % {'a': 1}", "1"),
    ],
)
def test_value(expression: str, value: str) -> None:
    assert value_of(expression, moment=MOMENT) == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("'{0.real}'.format(1)", "neither a position nor a name"),
        ("'{0[a]}'.format({'a': 1})", "neither a position nor a name"),
        ("'{a.b}'.format(a=1)", "neither a position nor a name"),
        ("'{}{}'.format(1)", "no value for the field `{1}`"),
        ("'{x}'.format(1)", "no value for the field `{x}`"),
        ("'{'.format(1)", "cannot format the string"),
        ("'{:{}}'.format(1, 2)", "is not a format specifier"),
        ("'{:d}'.format('a')", "does not fit"),
        ("'{:5}'.format([1])", "has no format specifier"),
        ("'{!x}'.format(1)", "not a conversion"),
        ("'%d' % 'a'", "cannot format the string"),
        ("'%(a)s' % {'b': 1}", "no value for 'a'"),
        ("'%s %s' % 1", "cannot format the string"),
        ("'%*d' % (5, 1)", "is not supported as a width"),
        ("'{:%5Y}'.format(moment)", "not a date directive"),
    ],
)
def test_what_does_not_fit_is_named(expression: str, message: str) -> None:
    assert message in error_of(expression, moment=MOMENT).message
