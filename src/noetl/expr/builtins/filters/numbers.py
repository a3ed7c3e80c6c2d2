"""Filters for numbers and booleans.

Tested in tests/unit/expr/builtins/test_filters.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import Context, check_bits
from noetl.expr.runtime.iteration import number
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.runtime.value_types import kind_of

_PRECISION: Final = 300
_LONGEST: Final = 1_000
_TRUE: Final = frozenset({"true", "yes", "on", "1", "t", "y"})


def _defined(value: Any) -> Any:
    if isinstance(value, Undefined):
        value.fail()
    return value


def absolute(_context: Context, value: Any) -> Any:
    """Absolute value of a number."""
    if not isinstance(_defined(value), int | float):
        raise EvaluationError(f"`abs` takes a number, not {kind_of(value)}")
    return abs(value)


def draw_float(context: Context, value: Any) -> None:
    """Draw for the conversion of a string to a float."""
    if isinstance(value, str):
        context.spend(len(value))


def integer(context: Context, value: Any, default: Any = 0, base: int = 10) -> Any:
    """Convert to an integer, or return `default`."""
    _defined(value)
    if isinstance(value, str):
        check_bits(len(value))
        context.spend(len(value) * len(value) >> 11)
    try:
        return int(value, base) if isinstance(value, str) else int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    try:
        return int(float(value))
    except (TypeError, ValueError, OverflowError):
        return default


def floating(context: Context, value: Any, default: Any = 0.0) -> Any:
    """Convert to a float, or return `default`."""
    draw_float(context, value)
    try:
        return float(_defined(value))
    except (TypeError, ValueError, OverflowError):
        return default


def round_(context: Context, value: Any, precision: int = 0, method: str = "common") -> Any:
    """Round to `precision` decimals; `method` is `common`, `ceil` or `floor`."""
    if not isinstance(_defined(value), int | float):
        raise EvaluationError(f"`round` takes a number, not {kind_of(value)}")
    if abs(number("precision", precision)) > _PRECISION:
        raise EvaluationError(f"`precision` must be at most {_PRECISION}")
    if method not in {"common", "ceil", "floor"}:
        raise EvaluationError("`method` must be `common`, `ceil` or `floor`")
    if isinstance(value, int):
        context.budget.integers(value, 10 ** abs(precision))
    try:
        if method == "common":
            return round(value, precision)
        operate = math.ceil if method == "ceil" else math.floor
        return operate(value * (10**precision)) / (10**precision)
    except (OverflowError, ValueError):
        raise EvaluationError("the number is too large to be round_") from None


def boolean(_context: Context, value: Any) -> bool:
    """Convert to a boolean; strings are true if they are true, yes, on, 1, t or y."""
    if not isinstance(value, str):
        return bool(value)
    return len(value) <= _LONGEST and value.strip().lower() in _TRUE


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": absolute,
    "bool": boolean,
    "float": floating,
    "int": integer,
    "round": round_,
}
