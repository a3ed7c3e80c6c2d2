"""Filters on lists; a map yields its keys.

Tested in tests/unit/expr/builtins/test_filters.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import SLOT, Context
from noetl.expr.runtime.iteration import (
    attribute_getter,
    check_keys,
    fold_case,
    identity,
    items_of,
    number,
    sort_by,
    unchanged,
)
from noetl.expr.runtime.lookup import Group
from noetl.expr.runtime.operators import add
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.runtime.value_types import kind_of

_MOST_KEYS: Final = 100


def _folding(context: Context, case_sensitive: bool) -> Callable[[Any], Any]:
    return unchanged if case_sensitive else partial(fold_case, context)


def default(_context: Context, value: Any, default_value: Any = "", boolean: bool = False) -> Any:
    """The value, or `default_value` if undefined (with `boolean`: if false or empty)."""
    return default_value if isinstance(value, Undefined) or (boolean and not value) else value


def length(_context: Context, value: Any) -> int:
    """Number of items, keys or characters."""
    try:
        return len(value)
    except TypeError:
        raise EvaluationError(f"{kind_of(value)} has no length") from None


def first(context: Context, value: Any) -> Any:
    """First item."""
    if isinstance(value, str | list | tuple):
        return value[0] if value else Undefined(("(value)", "first"))
    items = items_of(context, value)
    return items[0] if items else Undefined(("(value)", "first"))


def last(context: Context, value: Any) -> Any:
    """Last item."""
    if isinstance(value, str | list | tuple):
        return value[-1] if value else Undefined(("(value)", "last"))
    items = items_of(context, value)
    return items[-1] if items else Undefined(("(value)", "last"))


def to_list(context: Context, value: Any) -> list[Any]:
    """Convert to a list."""
    items = items_of(context, value)
    context.produce(len(items) * SLOT)
    return list(items)


def reverse(context: Context, value: Any) -> Any:
    """Reverse a list or string."""
    if isinstance(value, str):
        context.produce(len(value))
        return value[::-1]
    return to_list(context, value)[::-1]


def sort(
    context: Context, value: Any, reverse: bool = False, case_sensitive: bool = False, attribute: Any = None
) -> list[Any]:
    """Sort items, optionally by `attribute` (`'a.b'`, or several: `'a,b'`)."""
    items = to_list(context, value)
    parts = attribute.split(",", _MOST_KEYS) if isinstance(attribute, str) else [attribute]
    getters = [attribute_getter(context, part) for part in parts]
    context.spend(2 * len(items) * len(getters))
    fold = _folding(context, case_sensitive)
    if len(getters) == 1:
        keys = [fold(getters[0](item)) for item in items]
    else:
        keys = [[fold(get(item)) for get in getters] for item in items]
    return sort_by(context, items, keys, bool(reverse))


def unique(context: Context, value: Any, case_sensitive: bool = False, attribute: Any = None) -> list[Any]:
    """Remove duplicates; keeps the order."""
    get = attribute_getter(context, attribute)
    fold = _folding(context, case_sensitive)
    found: dict[Any, Any] = {}
    for item in items_of(context, value, 4):
        found.setdefault(identity(context, fold(get(item))), item)
    context.produce(len(found) * SLOT)
    return list(found.values())


def join(context: Context, value: Any, d: Any = "", attribute: Any = None) -> str:
    """Join items into a string, separated by `d`."""
    get = attribute_getter(context, attribute)
    between = context.text(d)
    parts: list[str] = []
    for item in items_of(context, value, 3):
        part = context.text(get(item))
        context.produce(len(part) + len(between))
        parts.append(part)
    return between.join(parts)


def sum_items(context: Context, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    """Sum of the items, or of their `attribute`."""
    get = attribute_getter(context, attribute)
    result = start
    for item in items_of(context, value, 2):
        result = add(context, result, get(item))
    return result


def _extreme(
    context: Context, value: Any, case_sensitive: bool, attribute: Any, choose: Callable[..., Any], name: str
) -> Any:
    items = items_of(context, value, 3)
    if not items:
        return Undefined(("(value)", name))
    fold = _folding(context, case_sensitive)
    get = attribute_getter(context, attribute)
    keys = [fold(get(item)) for item in items]
    check_keys(context, keys)
    try:
        return items[choose(range(len(items)), key=keys.__getitem__)]
    except TypeError:
        kinds = sorted({kind_of(key) for key in keys})
        raise EvaluationError(f"cannot sort values of these types together: {', '.join(kinds)}") from None


def smallest(context: Context, value: Any, case_sensitive: bool = False, attribute: Any = None) -> Any:
    """Smallest item."""
    return _extreme(context, value, case_sensitive, attribute, min, "min")


def largest(context: Context, value: Any, case_sensitive: bool = False, attribute: Any = None) -> Any:
    """Largest item."""
    return _extreme(context, value, case_sensitive, attribute, max, "max")


def batch(context: Context, value: Any, linecount: int, fill_with: Any = None) -> list[list[Any]]:
    """Split into lists of `linecount` items; fills up the last one with `fill_with`."""
    items = to_list(context, value)
    size = number("linecount", linecount)
    if size < 1:
        raise EvaluationError("`linecount` must be positive")
    context.budget.items(4 * (len(items) // size))
    batches = [items[start : start + size] for start in range(0, len(items), size)]
    if batches and fill_with is not None:
        missing = size - len(batches[-1])
        context.budget.items(missing)
        batches[-1].extend([fill_with] * missing)
    return batches


def spread(context: Context, value: Any, slices: int, fill_with: Any = None) -> list[list[Any]]:
    """Distribute the items over `slices` lists of about the same length."""
    items = to_list(context, value)
    count = number("slices", slices)
    if count < 1:
        raise EvaluationError("`slices` must be positive")
    context.budget.items(4 * count)
    size, longer = divmod(len(items), count)
    made: list[list[Any]] = []
    start = 0
    for index in range(count):
        end = start + size + (index < longer)
        part = items[start:end]
        if fill_with is not None and index >= longer:
            part.append(fill_with)
        made.append(part)
        start = end
    return made


def groupby(
    context: Context, value: Any, attribute: Any, default: Any = None, case_sensitive: bool = False
) -> list[Group]:
    """Group items by `attribute`: pairs of the common value and its items."""
    items = to_list(context, value)
    get = attribute_getter(context, attribute, default)
    fold = _folding(context, case_sensitive)
    context.spend(6 * len(items))
    keys = [fold(get(item)) for item in items]
    ordered = sort_by(context, list(range(len(items))), keys, False)
    groups: list[tuple[Any, list[Any]]] = []
    for index in ordered:
        if not groups or keys[index] != groups[-1][0]:
            groups.append((keys[index], []))
        groups[-1][1].append(items[index])
    return [Group((get(members[0]), members)) for _, members in groups]


def flatten(context: Context, value: Any, levels: int | None = None) -> list[Any]:
    """Flatten nested lists, `levels` deep or completely."""
    depth = 200 if levels is None else number("levels", levels, 200)
    items = to_list(context, value)
    while depth > 0 and any(isinstance(item, list | tuple) for item in items):
        context.spend(4 * len(items))
        flat: list[Any] = []
        for item in items:
            if isinstance(item, list | tuple):
                context.budget.items(len(item))
                flat.extend(item)
            else:
                flat.append(item)
        items, depth = flat, depth - 1
    return items


def _by_identity(context: Context, value: Any) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for item in items_of(context, value, 3):
        found.setdefault(identity(context, item), item)
    context.produce(len(found) * SLOT)
    return found


def union(context: Context, value: Any, other: Any) -> list[Any]:
    """Items of either list, without duplicates."""
    found = _by_identity(context, value)
    for key, item in _by_identity(context, other).items():
        found.setdefault(key, item)
    return list(found.values())


def intersect(context: Context, value: Any, other: Any) -> list[Any]:
    """Items of both lists, without duplicates."""
    kept = _by_identity(context, other)
    return [item for key, item in _by_identity(context, value).items() if key in kept]


def difference(context: Context, value: Any, other: Any) -> list[Any]:
    """Items that the other list does not contain, without duplicates."""
    left_out = _by_identity(context, other)
    return [item for key, item in _by_identity(context, value).items() if key not in left_out]


def zip_lists(context: Context, value: Any, *others: Any) -> list[tuple[Any, ...]]:
    """Combine lists item by item, up to the end of the shortest."""
    lists = [items_of(context, other) for other in (value, *others)]
    context.produce(min(map(len, lists)) * (len(lists) + 4) * SLOT)
    return list(zip(*lists, strict=False))


def ternary(_context: Context, value: Any, when_true: Any, when_false: Any, when_null: Any = None) -> Any:
    """Choose between two values by whether this one is true; a third for null."""
    if value is None and when_null is not None:
        return when_null
    return when_true if value else when_false


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "batch": batch, "count": length, "d": default, "default": default, "difference": difference, "first": first,
    "flatten": flatten, "groupby": groupby, "intersect": intersect, "join": join, "last": last, "length": length,
    "list": to_list, "max": largest, "min": smallest, "reverse": reverse, "slice": spread, "sort": sort, "sum": sum_items,
    "ternary": ternary, "union": union, "unique": unique, "zip": zip_lists,
}  # fmt: skip
