"""Filters on maps. Tested in tests/unit/expr/builtins/test_filters.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import SLOT, Context
from noetl.expr.runtime.iteration import fold_case, items_of, sort_by
from noetl.expr.runtime.lookup import lookup
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.runtime.value_types import kind_of

_MAP: Final = 40  # bytes of a small map, in the budget's measure


def _map(context: Context, name: str, value: Any) -> Mapping[Any, Any]:
    if isinstance(value, Undefined):
        if context.strict:
            value.fail()
        return {}
    if not isinstance(value, Mapping):
        raise EvaluationError(f"`{name}` takes a map, not {kind_of(value)}")
    context.budget.items(2 * len(value))
    return value


def items(context: Context, value: Any) -> list[tuple[Any, Any]]:
    """Pairs of key and value."""
    return list(_map(context, "items", value).items())


def keys(context: Context, value: Any) -> list[Any]:
    """The keys."""
    return list(_map(context, "keys", value))


def values(context: Context, value: Any) -> list[Any]:
    """The values."""
    return list(_map(context, "values", value).values())


def dictsort(
    context: Context, value: Any, case_sensitive: bool = False, by: str = "key", reverse: bool = False
) -> list[tuple[Any, Any]]:
    """Pairs of key and value, sorted by `key` or by `value`."""
    if by not in {"key", "value"}:
        raise EvaluationError("`by` must be `key` or `value`")
    pairs = items(context, value)
    ordered = [pair[by == "value"] for pair in pairs]
    return sort_by(
        context, pairs, ordered if case_sensitive else [fold_case(context, key) for key in ordered], bool(reverse)
    )


def combine(context: Context, value: Any, *others: Any, recursive: bool = False) -> dict[Any, Any]:
    """Merge maps; later ones win, recursively with `recursive`."""
    merged = dict(_map(context, "combine", value))
    for other in others:
        merged = _merged(context, merged, _map(context, "combine", other), recursive)
    return merged


def _merged(context: Context, base: Mapping[Any, Any], other: Mapping[Any, Any], recursive: bool) -> dict[Any, Any]:
    context.budget.items(len(base) + len(other))
    merged = dict(base)
    context.spend(2 * len(other))
    for key, item in other.items():
        before = merged.get(key)
        if recursive and isinstance(before, Mapping) and isinstance(item, Mapping):
            merged[key] = _merged(context, before, item, recursive)
        else:
            merged[key] = item
    return merged


def _check_names(*names: Any) -> None:
    for name in names:
        if not isinstance(name, str):
            raise EvaluationError(f"a key's name must be a string, not {kind_of(name)}")


def dict2items(context: Context, value: Any, key_name: str = "key", value_name: str = "value") -> list[dict[str, Any]]:
    """List of maps with `key` and `value`, one per key."""
    context.produce(len(value) * _MAP)
    _check_names(key_name, value_name)
    return [{key_name: key, value_name: item} for key, item in _map(context, "dict2items", value).items()]


def items2dict(context: Context, value: Any, key_name: str = "key", value_name: str = "value") -> dict[Any, Any]:
    """Map from a list of maps with `key` and `value`."""
    made: dict[Any, Any] = {}
    _check_names(key_name, value_name)
    for item in items_of(context, value, 3):
        key = lookup(item, key_name, ("(item)",))
        if isinstance(key, Undefined):
            key.fail()
        if not isinstance(key, str | int | float | bool | None):
            raise EvaluationError(f"a key cannot be {kind_of(key)}")
        made[key] = lookup(item, value_name, ("(item)",))
    context.produce(len(made) * SLOT)
    return made


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "combine": combine,
    "dict2items": dict2items,
    "dictsort": dictsort,
    "items": items,
    "items2dict": items2dict,
    "keys": keys,
    "values": values,
}
