"""Filters that apply a filter or test to every item: `map`, `select`, `reject`, ….

They receive the tables of filters and tests as arguments, because they are entries of those tables. Tested in
tests/unit/expr/builtins/test_filters.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from noetl.expr.builtins.registry import Callee
from noetl.expr.errors import EvaluationError
from noetl.expr.names import did_you_mean, nearest
from noetl.expr.runtime.budget import SLOT, Context
from noetl.expr.runtime.iteration import attribute_getter, items_of
from noetl.expr.runtime.value_types import shown


def _find(table: Mapping[str, Callee], kind: str, name: Any) -> Callee:
    callee = table.get(name) if isinstance(name, str) else None
    if callee is None:
        fix = did_you_mean(nearest(name[:100], table)) if isinstance(name, str) else None
        raise EvaluationError(f"unknown {kind} `{shown(name)}`", None, fix)
    return callee


def item_filters(filters: Mapping[str, Callee], tests: Mapping[str, Callee]) -> Mapping[str, Callable[..., Any]]:
    """Return the filters of this module for these tables."""

    def map_(context: Context, value: Any, *args: Any, **named: Any) -> list[Any]:
        """Look up `attribute` in, or apply a filter to, every item: `map('upper')`."""
        if not args and "attribute" in named:
            change: Callable[[Any], Any] = attribute_getter(context, named.pop("attribute"), named.pop("default", None))
            if named:
                raise EvaluationError(f"`map` has no argument `{next(iter(named))}`")
        elif args:
            callee, rest = _find(filters, "filter", args[0]), args[1:]

            def change(item: Any) -> Any:
                return callee.call(context, item, *rest, **named)
        else:
            raise EvaluationError("`map` needs a filter or an attribute: `map('upper')`, `map(attribute='id')`")
        items = items_of(context, value, 2)
        context.produce(len(items) * SLOT)
        return [change(item) for item in items]

    def chosen(context: Context, value: Any, get: Callable[[Any], Any], args: tuple[Any, ...], keep: bool) -> list[Any]:
        items = items_of(context, value, 2)
        context.produce(len(items) * SLOT)
        if not args:
            return [item for item in items if bool(get(item)) is keep]
        callee, rest = _find(tests, "test", args[0]), args[1:]
        return [item for item in items if bool(callee.call(context, get(item), *rest)) is keep]

    def select(context: Context, value: Any, *args: Any) -> list[Any]:
        """Keep items that are true or pass a test: `select('>', 3)`."""
        return chosen(context, value, attribute_getter(context, None), args, True)

    def reject(context: Context, value: Any, *args: Any) -> list[Any]:
        """Drop items that are true or pass a test: `reject('none')`."""
        return chosen(context, value, attribute_getter(context, None), args, False)

    def selectattr(context: Context, value: Any, attribute: Any, *args: Any) -> list[Any]:
        """Keep items whose `attribute` passes a test: `selectattr('age', '>', 18)`."""
        return chosen(context, value, attribute_getter(context, attribute), args, True)

    def rejectattr(context: Context, value: Any, attribute: Any, *args: Any) -> list[Any]:
        """Drop items whose `attribute` passes a test: `rejectattr('id', 'none')`."""
        return chosen(context, value, attribute_getter(context, attribute), args, False)

    return {"map": map_, "reject": reject, "rejectattr": rejectattr, "select": select, "selectattr": selectattr}
