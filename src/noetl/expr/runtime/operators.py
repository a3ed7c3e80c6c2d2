"""Arithmetic, comparison and containment over plain data; sizes are checked first.

Arithmetic on an undefined value raises an error that names its path. Comparisons with it are false, except `!=` and
`not in`. Tested in tests/unit/expr/runtime/test_operators.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import INTEGER_BITS, SLOT, Context, check_bits
from noetl.expr.runtime.formatting import percent
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.runtime.value_types import CONTAINERS, LISTS, NUMBERS, TIMES, kind_of

_SCALARS: Final = frozenset({int, float, bool, type(None), str})
_WORD: Final = 1 << 64
_SHORT: Final = 100  # Python compares character by character while one looks for a shorter text than this


def _refuse(sign: str, left: Any, right: Any) -> EvaluationError:
    for value in (left, right):
        if isinstance(value, Undefined):
            return value.error()
    return EvaluationError(f"`{sign}` does not support {kind_of(left)} and {kind_of(right)}")


def add(context: Context, left: Any, right: Any) -> Any:
    """`left + right`: numbers, strings, lists, dates and durations."""
    if isinstance(left, NUMBERS) and isinstance(right, NUMBERS):
        return left + right if _is_small(left, right) else _sum(context, "+", left, right)
    if isinstance(left, str) and isinstance(right, str):
        context.produce(len(left) + len(right))
        return left + right
    if isinstance(left, LISTS) and isinstance(right, LISTS) and isinstance(left, list) is isinstance(right, list):
        context.spend((len(left) + len(right)) // SLOT)
        context.produce((len(left) + len(right)) * SLOT)
        return [*left, *right] if isinstance(left, list) else (*left, *right)
    if isinstance(left, TIMES) and isinstance(right, TIMES):
        return _times("+", left, right)
    raise _refuse("+", left, right)


def _is_small(left: Any, right: Any) -> bool:
    """Return whether neither number is an integer of more than a few words."""
    return (isinstance(left, float) or -_WORD < left < _WORD) and (isinstance(right, float) or -_WORD < right < _WORD)


def _sum(context: Context, sign: str, left: Any, right: Any) -> Any:
    """Add or subtract large integers, within the size limit."""
    if isinstance(left, int) and isinstance(right, int):
        bits = max(left.bit_length(), right.bit_length()) + 1
        check_bits(bits)
        context.spend(bits >> 8)
        context.produce(bits >> 3)
    try:
        return left + right if sign == "+" else left - right
    except OverflowError:
        raise EvaluationError(f"the result of `{sign}` is too large for a number") from None


def _times(sign: str, left: Any, right: Any) -> Any:
    try:
        return left + right if sign == "+" else left - right
    except (TypeError, OverflowError) as error:
        raise EvaluationError(f"`{sign}` on dates failed: {error}") from None


def subtract(context: Context, left: Any, right: Any) -> Any:
    """`left - right`: numbers, dates and durations."""
    if isinstance(left, NUMBERS) and isinstance(right, NUMBERS):
        return left - right if _is_small(left, right) else _sum(context, "-", left, right)
    if isinstance(left, TIMES) and isinstance(right, TIMES):
        return _times("-", left, right)
    raise _refuse("-", left, right)


def multiply(context: Context, left: Any, right: Any) -> Any:
    """`left * right`: numbers, or a string or list repeated."""
    if isinstance(left, NUMBERS) and isinstance(right, NUMBERS):
        if isinstance(left, int) and isinstance(right, int):
            if not _is_small(left, right):
                check_bits(left.bit_length() + right.bit_length())
                context.budget.integers(left, right)
            return left * right
        return _float_product(left, right)
    if isinstance(left, int) and isinstance(right, (str, *LISTS)):
        left, right = right, left
    if isinstance(left, str) and isinstance(right, int):
        context.produce(len(left) * max(right, 0))
        return left * max(right, 0)
    if isinstance(left, LISTS) and isinstance(right, int):
        size = len(left) * max(right, 0)
        context.produce(size * SLOT)
        context.spend(size // SLOT)
        return left * max(right, 0)
    if isinstance(left, timedelta) and isinstance(right, int | float):
        try:
            return left * right
        except (OverflowError, ValueError):
            raise EvaluationError("the duration is too long") from None
    raise _refuse("*", left, right)


def _float_product(left: float, right: float) -> float:
    try:
        return left * right
    except OverflowError:
        raise EvaluationError("the result of `*` is too large for a number") from None


def _number(sign: str, operate: Callable[[Any, Any], Any]) -> Callable[[Context, Any, Any], Any]:
    def calculate(context: Context, left: Any, right: Any) -> Any:
        if not (isinstance(left, NUMBERS) and isinstance(right, NUMBERS)):
            raise _refuse(sign, left, right)
        if isinstance(left, int) and isinstance(right, int) and not _is_small(left, right):
            context.budget.integers(left, right)
        try:
            return operate(left, right)
        except ZeroDivisionError:
            raise EvaluationError(f"`{sign}` by zero", None, "test the divisor first: `a / b if b else 0`") from None
        except OverflowError:
            raise EvaluationError(f"the result of `{sign}` is too large for a number") from None

    return calculate


divide = _number("/", lambda left, right: left / right)
divide_whole = _number("//", lambda left, right: left // right)
_remainder = _number("%", lambda left, right: left % right)


def remainder(context: Context, left: Any, right: Any) -> Any:
    """`left % right`: the remainder of numbers, or a string with its `%s` filled in."""
    if isinstance(left, str):
        return percent(context, left, right)
    return _remainder(context, left, right)


def power(context: Context, left: Any, right: Any) -> Any:
    """`left ** right`, within the size limit."""
    if not (isinstance(left, NUMBERS) and isinstance(right, NUMBERS)):
        raise _refuse("**", left, right)
    if isinstance(left, int) and isinstance(right, int) and abs(left) > 1 and right > 1:
        bits = right if right > INTEGER_BITS else int(math.log2(abs(left)) * right) + 1
        check_bits(bits)
        if bits > 64:
            context.spend((bits * bits >> 16) + (bits >> 9))
            context.produce(bits >> 3)
    try:
        result = left**right
    except (ZeroDivisionError, OverflowError):
        raise EvaluationError("the result of `**` is not a number, or is too large") from None
    if isinstance(result, complex):
        raise EvaluationError("the result of `**` is not a real number")
    return result


ARITHMETIC: Final[Mapping[str, Callable[[Context, Any, Any], Any]]] = {
    "+": add, "-": subtract, "*": multiply, "/": divide, "//": divide_whole, "%": remainder, "**": power,
}  # fmt: skip


def negate(context: Context, sign: str, value: Any) -> Any:
    """`-value` or `+value`."""
    if isinstance(value, int | float | timedelta):
        if isinstance(value, int) and not -_WORD < value < _WORD:
            return _sum(context, sign, 0, value)
        return -value if sign == "-" else +value
    if isinstance(value, Undefined):
        value.fail()
    raise EvaluationError(f"`{sign}` does not support {kind_of(value)}")


def draw_for(context: Context, left: Any, right: Any) -> None:
    """Draw the cost of comparing two values. Numbers and short strings are free."""
    if isinstance(left, CONTAINERS) and isinstance(right, CONTAINERS):
        context.budget.weigh(left)
    elif isinstance(left, str) and isinstance(right, str):
        context.spend(min(len(left), len(right)) // 256)
    elif isinstance(left, int) and isinstance(right, int) and not _is_small(left, right):
        context.spend(min(left.bit_length(), right.bit_length()) >> 9)


def equal(context: Context, left: Any, right: Any) -> bool:
    """`left == right`; false for an undefined value."""
    if type(left) in _SCALARS and type(right) is not str and type(left) is not int:
        return bool(left == right)
    if isinstance(left, CONTAINERS) and type(left) is type(right) and len(left) != len(right):
        return False
    if isinstance(left, Undefined) or isinstance(right, Undefined):
        return False
    draw_for(context, left, right)
    return bool(left == right)


def _ordered(sign: str, compare: Callable[[Any, Any], Any]) -> Callable[[Context, Any, Any], bool]:
    def test(context: Context, left: Any, right: Any) -> bool:
        draw_for(context, left, right)
        try:
            return bool(compare(left, right))
        except TypeError:
            raise EvaluationError(f"`{sign}` cannot compare {kind_of(left)} with {kind_of(right)}") from None

    return test


def search_cost(text: str, part: str) -> int:
    """Return the cost of a search, which is not linear if both texts are short."""
    return len(text) * min(len(part), _SHORT) // 128 + len(text) // 64


def backward_cost(text: str, part: str) -> int:
    """Return the cost of a search from the end, which is never linear."""
    return (max(len(text) - len(part), 0) * len(part) + len(text)) // 64


def contains(context: Context, item: Any, container: Any) -> bool:
    """`item in container`: a key of a map, an item of a list, a substring."""
    if isinstance(container, Undefined) or isinstance(item, Undefined):
        return False
    if isinstance(container, str):
        if not isinstance(item, str):
            raise EvaluationError(f"`in` cannot search for {kind_of(item)} in a string", None, "add `| string` to it")
        context.spend(search_cost(container, item))
        return item in container
    if isinstance(container, Mapping):
        # A list is no key. A tuple would be hashed with everything that it contains.
        return not isinstance(item, CONTAINERS) and item in container
    if isinstance(container, LISTS):
        if type(item) in _SCALARS and (type(item) is not str or len(item) < _SHORT):
            context.spend(len(container) // 2)
            return item in container
        context.spend(len(container) * 3)
        return any(equal(context, item, other) for other in container)
    raise EvaluationError(f"`in` does not support {kind_of(container)}")


COMPARISONS: Final[Mapping[str, Callable[[Context, Any, Any], bool]]] = {
    "==": equal,
    "!=": lambda context, left, right: not equal(context, left, right),
    "<": _ordered("<", lambda left, right: left < right),
    "<=": _ordered("<=", lambda left, right: left <= right),
    ">": _ordered(">", lambda left, right: left > right),
    ">=": _ordered(">=", lambda left, right: left >= right),
    "in": contains,
    "not in": lambda context, item, container: not contains(context, item, container),
}
