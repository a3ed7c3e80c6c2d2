"""Writes to `ctx`: dotted keys, plain values, reducers and deep merges.

Tested in tests/unit/engine/routing/test_loops.py and test_route.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

from noetl.expr import Undefined
from noetl.expr.errors import EvaluationError
from noetl.model.plain_data import MOST_DEPTH, scalar_problem
from noetl.model.refs import SCALARS


def put(ctx: dict[str, Any], key: str, value: Any) -> None:
    """Write a dotted key; maps on the way are copied, never changed."""
    *way, last = key.split(".")
    target = ctx
    for part in way:
        below = target.get(part)
        target[part] = below = dict(below) if isinstance(below, Mapping) else {}
        target = below
    target[last] = value


def plain(value: Any, depth: int = 0) -> Any:
    """Convert a value to JSON data: times become text, undefined becomes null.

    Raises EvaluationError for what the log cannot hold.
    """
    if type(value) in SCALARS:
        return _storable(value)
    if isinstance(value, str):
        return _storable(str(value))
    if depth > MOST_DEPTH:
        raise EvaluationError(f"the value is nested deeper than {MOST_DEPTH} levels")
    if isinstance(value, Mapping):
        return {_storable(str(_storable(key))): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return None if isinstance(value, Undefined) else value


def _storable(value: Any) -> Any:
    found = scalar_problem(value)
    if found is not None:
        raise EvaluationError(f"the value cannot be recorded: {found}")
    return value


def ctx_keys(writes: Mapping[str, Any]) -> dict[str, Any]:
    """Return writes under their keys in `ctx`."""
    return {key.removeprefix("ctx."): value for key, value in writes.items()}


def reduced(how: str, values: Mapping[int, Any]) -> Any:
    """Reduce what the items of a loop wrote to one value. Raises TypeError."""
    ordered = [values[index] for index in sorted(values)]
    if how == "count":
        return len(ordered)
    if how == "append":
        return ordered
    if how == "last":
        return ordered[-1]
    if how == "merge":
        merged: dict[str, Any] = {}
        for value in ordered:
            if not isinstance(value, Mapping):
                raise TypeError("`merge` takes maps")
            merged = merge(merged, value)
        return merged
    if how in ("min", "max"):
        return min(ordered) if how == "min" else max(ordered)
    total = ordered[0]
    for value in ordered:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError("`sum` takes numbers")
    for value in ordered[1:]:
        total += value
    return total


EMPTY: dict[str, Any] = {"sum": 0, "count": 0, "append": [], "merge": {}}  # result of a reducer without writes


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two maps deeply; the upper one wins, lists are replaced."""
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged
