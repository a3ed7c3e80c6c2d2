"""Functions that templates may call.

Pure functions are implemented here. `now`, `gen_uuid`, `done`, `ok` and `fail` depend on the moment and the execution:
the caller passes them as `functions={'now': …}`, and they are declared here so that templates can be checked without
them. Tested in tests/unit/expr/builtins/test_functions.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from noetl.expr.builtins.registry import Callee
from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import Context
from noetl.expr.runtime.iteration import number
from noetl.expr.runtime.undefined import Undefined


def range_(context: Context, start: int, stop: int | None = None, step: int = 1) -> list[int]:
    """Integers from `start` (or 0) up to `stop`, exclusive."""
    first, end = (0, number("stop", start)) if stop is None else (number("start", start), number("stop", stop))
    if not number("step", step):
        raise EvaluationError("`step` must not be zero")
    numbers = range(first, end, step)
    try:
        count = len(numbers)
    except OverflowError:
        count = abs(end - first) // abs(step)
    context.budget.items(count)
    return list(numbers)


def dict_(context: Context, mapping: Any = None, **items: Any) -> dict[Any, Any]:
    """Map of named values, merged over another map if given."""
    if isinstance(mapping, Undefined):
        mapping.fail()
    if mapping is not None and not isinstance(mapping, Mapping):
        raise EvaluationError("`dict` takes a map and named arguments")
    context.budget.items(len(mapping or ()) + len(items))
    return {**(mapping or {}), **items}


def namespace(context: Context, mapping: Any = None, **items: Any) -> dict[Any, Any]:
    """Variable whose fields `for` can set: `{% set ns = namespace(sum_items=0) %}`."""
    return dict_(context, mapping, **items)


def duration(
    _context: Context, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, weeks: float = 0
) -> timedelta:
    """Duration to add to a date or subtract from it."""
    try:
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, weeks=weeks)
    except (TypeError, OverflowError, ValueError) as error:
        raise EvaluationError(f"not a duration: {error}") from None


def call_supplied(context: Context, name: str, *arguments: Any) -> Any:
    """Call a function that the caller passed in."""
    function = (context.functions or {}).get(name)
    if not callable(function):
        raise EvaluationError(f"`{name}()` is not available here", None, "use it where steps run, not in descriptions")
    return function(*arguments)


def _of_moment(name: str, summary: str) -> Callee:
    def function(context: Context) -> Any:
        return call_supplied(context, name)

    function.__doc__ = summary
    return Callee(name, "function", function, pure=False)


def _of_step(name: str, summary: str) -> Callee:
    def function(context: Context, step: str) -> Any:
        return call_supplied(context, name, step)

    function.__doc__ = summary
    return Callee(name, "function", function, pure=False)


FUNCTIONS: Final[Mapping[str, Callee]] = {
    "dict": Callee("dict", "function", dict_),
    "done": _of_step("done", "Whether the step has finished, successfully or not."),
    "fail": _of_step("fail", "Whether the step has failed."),
    "gen_uuid": _of_moment("gen_uuid", "Id that is unique to this place and call, and stable when work is repeated."),
    "namespace": Callee("namespace", "function", namespace),
    "now": _of_moment("now", "Time of the event being decided; on a worker, the start of the attempt."),
    "ok": _of_step("ok", "Whether the step has succeeded."),
    "range": Callee("range", "function", range_),
    "timedelta": Callee("timedelta", "function", duration),
}
