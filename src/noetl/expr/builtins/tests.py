"""Tests after `is`: `x is defined`, `n is divisibleby 3`.

Tested in tests/unit/expr/builtins/test_tests.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

from noetl.expr.builtins.registry import Callee
from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import SLOT, Context
from noetl.expr.runtime.operators import COMPARISONS, contains, equal, remainder
from noetl.expr.runtime.regex import compile_pattern
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.runtime.value_types import kind_of

_ITERABLE: Final = (list, tuple, str, Mapping, Undefined)


def _test(summary: str, test: Callable[..., bool]) -> Callable[..., bool]:
    test.__doc__ = summary
    return test


def letters(context: Context, value: Any) -> str:
    """Return a value as text, drawing for a look at each letter."""
    text = context.text(value)
    context.spend(len(text) // SLOT)
    return text


_SIMPLE: Final[Mapping[str, Callable[..., Any]]] = {
    "defined": _test("Whether the value is defined.", lambda _context, value: not isinstance(value, Undefined)),
    "undefined": _test("Whether the value is undefined.", lambda _context, value: isinstance(value, Undefined)),
    "none": _test("Whether the value is null.", lambda _context, value: value is None),
    "boolean": _test("Whether the value is a boolean.", lambda _context, value: value is True or value is False),
    "true": _test("Whether the value is `true`.", lambda _context, value: value is True),
    "false": _test("Whether the value is `false`.", lambda _context, value: value is False),
    "integer": _test(
        "Whether the value is an integer.",
        lambda _context, value: isinstance(value, int) and not isinstance(value, bool),
    ),
    "float": _test("Whether the value is a float.", lambda _context, value: isinstance(value, float)),
    "number": _test(
        "Whether the value is a number (or a boolean, which counts as 0 or 1).",
        lambda _context, value: isinstance(value, int | float),
    ),
    "string": _test("Whether the value is a string.", lambda _context, value: isinstance(value, str)),
    "mapping": _test("Whether the value is a map.", lambda _context, value: isinstance(value, Mapping)),
    "sequence": _test(
        "Whether the value has a length and items: a list, a string or a map.",
        lambda _context, value: isinstance(value, _ITERABLE),
    ),
    "iterable": _test(
        "Whether `for` can iterate over the value.", lambda _context, value: isinstance(value, _ITERABLE)
    ),
    "date": _test("Whether the value is a date.", lambda _context, value: isinstance(value, date)),
    "callable": _test("Always false: values are data and cannot be called.", lambda _context, _value: False),
    "escaped": _test("Always false: templates do not escape.", lambda _context, _value: False),
    "lower": _test("Whether all letters are lower case.", lambda context, value: letters(context, value).islower()),
    "upper": _test("Whether all letters are upper case.", lambda context, value: letters(context, value).isupper()),
}


def _number(value: Any, name: str) -> Any:
    if isinstance(value, Undefined):
        value.fail()
    if not isinstance(value, int | float):
        raise EvaluationError(f"`{name}` takes a number, not {kind_of(value)}")
    return value


def even(context: Context, value: Any) -> bool:
    """Whether the number is even."""
    return bool(remainder(context, _number(value, "even"), 2) == 0)


def odd(context: Context, value: Any) -> bool:
    """Whether the number is odd."""
    return bool(remainder(context, _number(value, "odd"), 2) == 1)


def divisibleby(context: Context, value: Any, num: Any) -> bool:
    """Whether the number is a multiple of `num`."""
    if not _number(num, "divisibleby"):
        raise EvaluationError("a number is never divisible by zero")
    return bool(remainder(context, _number(value, "divisibleby"), num) == 0)


def sameas(context: Context, value: Any, other: Any) -> bool:
    """Whether the values are equal and of the same type."""
    return type(value) is type(other) and equal(context, value, other)


def in_(context: Context, value: Any, seq: Any) -> bool:
    """Whether the value is an item of a list, a key of a map or a substring."""
    return contains(context, value, seq)


def contains_(context: Context, value: Any, item: Any) -> bool:
    """Whether the list, map or string contains an item, key or substring."""
    return contains(context, item, value)


def match(context: Context, value: Any, pattern: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    """Whether a regular expression matches at the beginning."""
    text = context.text(value)
    return compile_pattern(context, pattern, text, ignorecase, multiline).match(text) is not None


def search(context: Context, value: Any, pattern: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    """Whether a regular expression matches anywhere."""
    text = context.text(value)
    return compile_pattern(context, pattern, text, ignorecase, multiline).search(text) is not None


def _comparison(sign: str, summary: str) -> Callable[..., Any]:
    compare = COMPARISONS[sign]

    def test(context: Context, value: Any, other: Any) -> bool:
        return compare(context, value, other)

    test.__doc__ = summary
    return test


_EQ = _comparison("==", "Whether the values are equal.")
_NE = _comparison("!=", "Whether the values differ.")
_LT = _comparison("<", "Whether the value is less.")
_LE = _comparison("<=", "Whether the value is less or equal.")
_GT = _comparison(">", "Whether the value is greater.")
_GE = _comparison(">=", "Whether the value is greater or equal.")


def lookup_tests(filters: Mapping[str, Callee], tests: Mapping[str, Callee]) -> Mapping[str, Callable[..., Any]]:
    """Return the tests that look up names in these tables."""

    def filter_(_context: Context, value: Any) -> bool:
        """Whether a filter of this name exists."""
        return isinstance(value, str) and value in filters

    def test(_context: Context, value: Any) -> bool:
        """Whether a test of this name exists."""
        return isinstance(value, str) and value in tests

    return {"filter": filter_, "test": test}


TESTS: Final[Mapping[str, Callable[..., Any]]] = {
    **_SIMPLE,
    "!=": _NE, "<": _LT, "<=": _LE, "==": _EQ, ">": _GT, ">=": _GE, "contains": contains_, "divisibleby": divisibleby,
    "eq": _EQ, "equalto": _EQ, "even": even, "ge": _GE, "greaterthan": _GT, "gt": _GT, "in": in_, "le": _LE,
    "lessthan": _LT, "lt": _LT, "match": match, "ne": _NE, "odd": odd, "regex": search, "sameas": sameas,
    "search": search,
}  # fmt: skip
