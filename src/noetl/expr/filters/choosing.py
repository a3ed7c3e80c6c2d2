"""Filters that apply another filter or test to every item: `map`, `select`, `reject` and their kin.

The tables they look names up in are given to them, because they stand in those tables themselves. Tested in
tests/unit/expr/test_filters.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from noetl.expr.budget import SLOT, Context
from noetl.expr.errors import EvaluationError
from noetl.expr.iterate import attribute_getter, items_of
from noetl.expr.names import did_you_mean, nearest
from noetl.expr.registry import Callee


def _find(table: Mapping[str, Callee], kind: str, name: Any) -> Callee:
    callee = table.get(name) if isinstance(name, str) else None
    if callee is None:
        raise EvaluationError(f"there is no {kind} `{name}`", None, did_you_mean(nearest(str(name)[:100], table)))
    return callee


def choosing(filters: Mapping[str, Callee], tests: Mapping[str, Callee]) -> Mapping[str, Callable[..., Any]]:
    """The filters of this module over these tables."""

    def map_(context: Context, value: Any, *args: Any, **named: Any) -> list[Any]:
        """The items, each looked up by `attribute` or sent through a filter: `map('upper')`, `map(attribute='id')`."""
        if not args and "attribute" in named:
            change: Callable[[Any], Any] = attribute_getter(named.pop("attribute"), named.pop("default", None))
            if named:
                raise EvaluationError(f"`map` does not know the argument `{next(iter(named))}`")
        elif args:
            callee, rest = _find(filters, "filter", args[0]), args[1:]

            def change(item: Any) -> Any:
                return callee.call(context, item, *rest, **named)
        else:
            raise EvaluationError("`map` needs a filter or an attribute: `map('upper')`, `map(attribute='id')`")
        items = items_of(context, value)
        context.produce(len(items) * SLOT)
        return [change(item) for item in items]

    def chosen(context: Context, value: Any, get: Callable[[Any], Any], args: tuple[Any, ...], keep: bool) -> list[Any]:
        items = items_of(context, value)
        context.produce(len(items) * SLOT)
        if not args:
            return [item for item in items if bool(get(item)) is keep]
        callee, rest = _find(tests, "test", args[0]), args[1:]
        return [item for item in items if bool(callee.call(context, get(item), *rest)) is keep]

    def select(context: Context, value: Any, *args: Any) -> list[Any]:
        """The items that are true, or that pass a test: `select('>', 3)`."""
        return chosen(context, value, attribute_getter(None), args, True)

    def reject(context: Context, value: Any, *args: Any) -> list[Any]:
        """The items that are not true, or that fail a test: `reject('none')`."""
        return chosen(context, value, attribute_getter(None), args, False)

    def selectattr(context: Context, value: Any, attribute: Any, *args: Any) -> list[Any]:
        """The items whose `attribute` is true, or passes a test: `selectattr('age', '>', 18)`."""
        return chosen(context, value, attribute_getter(attribute), args, True)

    def rejectattr(context: Context, value: Any, attribute: Any, *args: Any) -> list[Any]:
        """The items whose `attribute` is not true, or fails a test: `rejectattr('id', 'none')`."""
        return chosen(context, value, attribute_getter(attribute), args, False)

    return {"map": map_, "reject": reject, "rejectattr": rejectattr, "select": select, "selectattr": selectattr}
