"""The tests that stand after `is`: `x is defined`, `n is divisibleby 3`. Tested in tests/unit/expr/test_tests.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

from noetl.expr.budget import Context
from noetl.expr.errors import EvaluationError
from noetl.expr.kinds import kind_of
from noetl.expr.operators import COMPARISONS, contains, equal
from noetl.expr.regex import compiled
from noetl.expr.registry import Callee
from noetl.expr.undefined import Undefined


def defined(_context: Context, value: Any) -> bool:
    """Whether the value is there."""
    return not isinstance(value, Undefined)


def undefined(_context: Context, value: Any) -> bool:
    """Whether the value is missing."""
    return isinstance(value, Undefined)


def none(_context: Context, value: Any) -> bool:
    """Whether the value is null."""
    return value is None


def boolean(_context: Context, value: Any) -> bool:
    """Whether the value is true or false."""
    return value is True or value is False


def true(_context: Context, value: Any) -> bool:
    """Whether the value is true itself."""
    return value is True


def false(_context: Context, value: Any) -> bool:
    """Whether the value is false itself."""
    return value is False


def integer(_context: Context, value: Any) -> bool:
    """Whether the value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def floating(_context: Context, value: Any) -> bool:
    """Whether the value is a number with decimals."""
    return isinstance(value, float)


def number(_context: Context, value: Any) -> bool:
    """Whether the value is a number (or a boolean, which counts as 0 or 1)."""
    return isinstance(value, int | float)


def string(_context: Context, value: Any) -> bool:
    """Whether the value is a text."""
    return isinstance(value, str)


def mapping(_context: Context, value: Any) -> bool:
    """Whether the value is a map."""
    return isinstance(value, Mapping)


def sequence(_context: Context, value: Any) -> bool:
    """Whether the value has a length and items: a list, a text or a map."""
    return isinstance(value, list | tuple | str | Mapping | Undefined)


def iterable(_context: Context, value: Any) -> bool:
    """Whether `for` can go over the value."""
    return isinstance(value, list | tuple | str | Mapping | Undefined)


def moment(_context: Context, value: Any) -> bool:
    """Whether the value is a date."""
    return isinstance(value, date)


def callable_(_context: Context, _value: Any) -> bool:
    """Never: values are data, and data cannot be called."""
    return False


def escaped(_context: Context, _value: Any) -> bool:
    """Never: nothing is escaped here, so nothing is marked."""
    return False


def lower(context: Context, value: Any) -> bool:
    """Whether all letters of the text are small."""
    return context.text(value).islower()


def upper(context: Context, value: Any) -> bool:
    """Whether all letters of the text are capital."""
    return context.text(value).isupper()


def _number(value: Any, name: str) -> Any:
    if isinstance(value, Undefined):
        value.fail()
    if not isinstance(value, int | float):
        raise EvaluationError(f"`{name}` takes a number, not {kind_of(value)}")
    return value


def even(_context: Context, value: Any) -> bool:
    """Whether the number is even."""
    return bool(_number(value, "even") % 2 == 0)


def odd(_context: Context, value: Any) -> bool:
    """Whether the number is odd."""
    return bool(_number(value, "odd") % 2 == 1)


def divisibleby(_context: Context, value: Any, num: Any) -> bool:
    """Whether the number is a multiple of another."""
    if not _number(num, "divisibleby"):
        raise EvaluationError("no number is divisible by zero")
    return bool(_number(value, "divisibleby") % num == 0)


def sameas(context: Context, value: Any, other: Any) -> bool:
    """Whether the values are equal and of the same type."""
    return type(value) is type(other) and equal(context, value, other)


def in_(context: Context, value: Any, seq: Any) -> bool:
    """Whether the value is an item of a list, a key of a map or a part of a text."""
    return contains(context, value, seq)


def contains_(context: Context, value: Any, item: Any) -> bool:
    """Whether the list, map or text holds an item, key or part."""
    return contains(context, item, value)


def match(context: Context, value: Any, pattern: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    """Whether the text begins with a match of a regular expression."""
    text = context.text(value)
    return compiled(context, pattern, text, ignorecase, multiline).match(text) is not None


def search(context: Context, value: Any, pattern: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    """Whether the text has a match of a regular expression anywhere."""
    text = context.text(value)
    return compiled(context, pattern, text, ignorecase, multiline).search(text) is not None


def _comparison(sign: str, summary: str) -> Callable[..., Any]:
    compare = COMPARISONS[sign]

    def test(context: Context, value: Any, other: Any) -> bool:
        return compare(context, value, other)

    test.__doc__ = summary
    return test


_EQ = _comparison("==", "Whether the values are equal.")
_NE = _comparison("!=", "Whether the values differ.")
_LT = _comparison("<", "Whether the value is smaller.")
_LE = _comparison("<=", "Whether the value is smaller or equal.")
_GT = _comparison(">", "Whether the value is larger.")
_GE = _comparison(">=", "Whether the value is larger or equal.")


def knowing(filters: Mapping[str, Callee], tests: Mapping[str, Callee]) -> Mapping[str, Callable[..., Any]]:
    """The tests that ask what there is."""

    def filter_(_context: Context, value: Any) -> bool:
        """Whether there is a filter of this name."""
        return isinstance(value, str) and value in filters

    def test(_context: Context, value: Any) -> bool:
        """Whether there is a test of this name."""
        return isinstance(value, str) and value in tests

    return {"filter": filter_, "test": test}


TESTS: Final[Mapping[str, Callable[..., Any]]] = {
    "!=": _NE, "<": _LT, "<=": _LE, "==": _EQ, ">": _GT, ">=": _GE,
    "boolean": boolean, "callable": callable_, "contains": contains_, "date": moment, "defined": defined,
    "divisibleby": divisibleby, "eq": _EQ, "equalto": _EQ, "escaped": escaped, "even": even, "false": false,
    "float": floating, "ge": _GE, "greaterthan": _GT, "gt": _GT, "in": in_, "integer": integer, "iterable": iterable,
    "le": _LE, "lessthan": _LT, "lower": lower, "lt": _LT, "mapping": mapping, "match": match, "ne": _NE, "none": none,
    "number": number, "odd": odd, "regex": search, "sameas": sameas, "search": search, "sequence": sequence,
    "string": string, "true": true, "undefined": undefined, "upper": upper,
}  # fmt: skip
