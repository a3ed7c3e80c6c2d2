"""Filters that make numbers and truth values of things. Tested in tests/unit/expr/test_filters.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from noetl.expr.budget import Context, check_bits
from noetl.expr.errors import EvaluationError
from noetl.expr.iterate import number
from noetl.expr.kinds import kind_of
from noetl.expr.undefined import Undefined

_PRECISION: Final = 300
_TRUE: Final = frozenset({"true", "yes", "on", "1", "t", "y"})


def _given(value: Any) -> Any:
    if isinstance(value, Undefined):
        value.fail()
    return value


def absolute(_context: Context, value: Any) -> Any:
    """The number without its sign."""
    if not isinstance(_given(value), int | float):
        raise EvaluationError(f"`abs` takes a number, not {kind_of(value)}")
    return abs(value)


def integer(context: Context, value: Any, default: Any = 0, base: int = 10) -> Any:
    """The value as a whole number, or `default` if it is none."""
    _given(value)
    if isinstance(value, str):
        context.spend(len(value) // 8)
        check_bits(len(value) * 4)
    try:
        return int(value, base) if isinstance(value, str) else int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    try:
        return int(float(value))
    except (TypeError, ValueError, OverflowError):
        return default


def floating(_context: Context, value: Any, default: Any = 0.0) -> Any:
    """The value as a number with decimals, or `default` if it is none."""
    try:
        return float(_given(value))
    except (TypeError, ValueError, OverflowError):
        return default


def rounded(_context: Context, value: Any, precision: int = 0, method: str = "common") -> Any:
    """The number rounded to `precision` decimals; `method` is `common`, `ceil` or `floor`."""
    if not isinstance(_given(value), int | float):
        raise EvaluationError(f"`round` takes a number, not {kind_of(value)}")
    if abs(number("precision", precision)) > _PRECISION:
        raise EvaluationError(f"`precision` may be {_PRECISION} at most")
    if method not in {"common", "ceil", "floor"}:
        raise EvaluationError("`method` must be `common`, `ceil` or `floor`")
    try:
        if method == "common":
            return round(value, precision)
        operate = math.ceil if method == "ceil" else math.floor
        return operate(value * (10**precision)) / (10**precision)
    except (OverflowError, ValueError):
        raise EvaluationError("the number is too large to be rounded") from None


def boolean(_context: Context, value: Any) -> bool:
    """True for a true value and for the texts true, yes, on, 1, t and y; false for anything else."""
    return value.strip().lower() in _TRUE if isinstance(value, str) else bool(value)


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": absolute,
    "bool": boolean,
    "float": floating,
    "int": integer,
    "round": rounded,
}
