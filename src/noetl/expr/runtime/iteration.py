"""Iterate, order and identify the items of a value, drawing the cost first.

A list has its items, a map its keys, a query result its rows, a string its characters, an undefined value nothing;
anything else is an error. Tested in tests/unit/expr/builtins/test_filters.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import SLOT, Context
from noetl.expr.runtime.lookup import lookup
from noetl.expr.runtime.undefined import Path, Undefined, first_undefined
from noetl.expr.runtime.value_types import CONTAINERS, LISTS, kind_of


def items_of(context: Context, value: Any, cost: int = 1) -> list[Any] | tuple[Any, ...]:
    """Return the items of `value`, not to be changed; each costs `cost` operations."""
    if isinstance(value, LISTS):
        context.spend(len(value) * cost)
        return value
    if isinstance(value, str):
        context.spend(len(value) * cost)
        context.produce(len(value) * SLOT * 2)
        return list(value)
    if isinstance(value, Mapping):
        rows = rows_of(value)
        context.spend(len(value if rows is None else rows) * cost)
        return list(value) if rows is None else rows
    if isinstance(value, Undefined):
        if context.strict:
            value.fail()
        return ()
    raise EvaluationError(f"cannot iterate over {kind_of(value)}")


def rows_of(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the rows of a query result, or None for any other map."""
    rows = value.get("rows") if "row_count" in value and "columns" in value else None
    return rows if isinstance(rows, list) else None


_ITEM: Final[Path] = ("(item)",)
_LONGEST: Final = 1_000
_MOST: Final = 1 << 62
_LONG: Final = 256  # a text that takes an operation to compare
Getter = Callable[[Any], Any]


def attribute_getter(context: Context, attribute: Any, default: Any = None) -> Getter:
    """Return the lookup for `attribute='a.b'` or `attribute=0`: keys and indexes only."""
    if attribute is None:
        return unchanged
    if not isinstance(attribute, str | int):
        raise EvaluationError(f"`attribute` must be a key or an index, not {kind_of(attribute)}")
    if isinstance(attribute, str) and len(attribute) > _LONGEST:
        raise EvaluationError(f"`attribute` must be at most {_LONGEST:,} characters")
    parts = attribute.split(".") if isinstance(attribute, str) else [attribute]
    keys = [int(part) if isinstance(part, str) and part.isdecimal() and len(part) < 10 else part for part in parts]

    if len(keys) == 1 and default is None:
        (only,) = keys

        def get_one(item: Any) -> Any:
            if type(item) is dict and only in item:
                return item[only]
            context.spend(2)
            return lookup(item, only, _ITEM)

        return get_one

    def get(item: Any) -> Any:
        context.spend(2 * len(keys))
        for key in keys:
            item = lookup(item, key, _ITEM)
            if default is not None and isinstance(item, Undefined):
                return default
        return item

    return get


def unchanged(value: Any) -> Any:
    return value


def fold_case(context: Context, value: Any) -> Any:
    """Lower-case strings; return anything else unchanged."""
    if not isinstance(value, str):
        return value
    context.spend(len(value) // SLOT)
    context.produce(len(value))
    return value.lower()


def sort_by(context: Context, items: list[Any], keys: list[Any], reverse: bool) -> list[Any]:
    """Sort items by their keys; stable."""
    comparisons = max(1, len(keys).bit_length())
    context.spend(len(keys) * comparisons)
    check_keys(context, keys, comparisons)
    try:
        order = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
    except TypeError:
        kinds = sorted({kind_of(key) for key in keys})
        raise EvaluationError(f"cannot sort values of these types together: {', '.join(kinds)}") from None
    return [items[index] for index in order]


def check_keys(context: Context, keys: list[Any], comparisons: int = 1) -> None:
    """Refuse undefined keys, and draw the cost of comparing large ones."""
    for key in keys:
        if isinstance(key, str):
            if len(key) >= _LONG:
                context.spend(len(key) * comparisons // _LONG)
        elif isinstance(key, int):
            if key.bit_length() >= _LONG:
                context.spend(key.bit_length() * comparisons // _LONG)
        elif isinstance(key, CONTAINERS):
            context.spend(comparisons * (context.budget.weigh(key).size // SLOT))
            missing = first_undefined(key)
            if missing is not None:
                missing.fail()
        elif isinstance(key, Undefined):
            key.fail()


def identity(context: Context, value: Any) -> Any:
    """Return something hashable that is equal for equal values."""
    if isinstance(value, list | tuple):
        context.budget.weigh(value)
        return (list, tuple(identity(context, item) for item in value))
    if isinstance(value, Mapping):
        context.budget.weigh(value)
        return (dict, frozenset((key, identity(context, item)) for key, item in value.items()))
    return Undefined if isinstance(value, Undefined) else value


def number(name: str, value: Any, most: int | None = None) -> int:
    """Check an integer argument, or raise an error that names it."""
    if isinstance(value, Undefined):
        value.fail()
    if not isinstance(value, int):
        raise EvaluationError(f"`{name}` must be an integer, not {kind_of(value)}")
    if value > (_MOST if most is None else most) or value < -_MOST:
        raise EvaluationError(f"`{name}` must be at most {_MOST if most is None else most:,}")
    return value
