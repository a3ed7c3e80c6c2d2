"""The functions that templates may call.

Pure ones are computed here. The others (`now`, `gen_uuid`, `done`, `ok`, `fail`) depend on the moment and on the
execution, which this package does not know: whoever evaluates hands them in, as `functions={'now': …}`, and their
names stand here so that a template can be checked without them. Tested in tests/unit/expr/test_functions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from noetl.expr.budget import Context
from noetl.expr.errors import EvaluationError
from noetl.expr.iterate import number
from noetl.expr.registry import Callee
from noetl.expr.undefined import Undefined


def range_(context: Context, start: int, stop: int | None = None, step: int = 1) -> list[int]:
    """The whole numbers from `start` (or 0) up to `stop`, without it."""
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
    """A map of named values, on top of another map if given."""
    if isinstance(mapping, Undefined):
        mapping.fail()
    if mapping is not None and not isinstance(mapping, Mapping):
        raise EvaluationError("`dict` takes a map and named values")
    made = {**(mapping or {}), **items}
    context.budget.items(len(made))
    return made


def namespace(context: Context, mapping: Any = None, **items: Any) -> dict[Any, Any]:
    """A variable whose fields can be set inside a `for`: `{% set ns = namespace(total=0) %}`."""
    return dict_(context, mapping, **items)


def duration(
    _context: Context, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, weeks: float = 0
) -> timedelta:
    """A duration, to be added to a date or taken from it."""
    try:
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, weeks=weeks)
    except (TypeError, OverflowError, ValueError) as error:
        raise EvaluationError(f"this is no duration: {error}") from None


def _handed_in(name: str, implementation: Callable[..., Any]) -> Callee:
    return Callee(name, "function", implementation, pure=False)


def call_given(context: Context, name: str, *arguments: Any) -> Any:
    """Call a function that whoever evaluates has handed in."""
    function = (context.functions or {}).get(name)
    if not callable(function):
        raise EvaluationError(
            f"`{name}()` has no value here", None, "use it where steps run, not where they are described"
        )
    return function(*arguments)


def now(context: Context) -> Any:
    """The time of the event being decided; on a worker, the start of the attempt."""
    return call_given(context, "now")


def gen_uuid(context: Context) -> Any:
    """An id that is unique to this place and this call, and the same again when the work is repeated."""
    return call_given(context, "gen_uuid")


def done(context: Context, step: str) -> Any:
    """Whether the step has ended, well or not."""
    return call_given(context, "done", step)


def ok(context: Context, step: str) -> Any:
    """Whether the step has ended well."""
    return call_given(context, "ok", step)


def fail(context: Context, step: str) -> Any:
    """Whether the step has failed."""
    return call_given(context, "fail", step)


FUNCTIONS: Final[Mapping[str, Callee]] = {
    "dict": Callee("dict", "function", dict_),
    "done": _handed_in("done", done),
    "fail": _handed_in("fail", fail),
    "gen_uuid": _handed_in("gen_uuid", gen_uuid),
    "namespace": Callee("namespace", "function", namespace),
    "now": _handed_in("now", now),
    "ok": _handed_in("ok", ok),
    "range": Callee("range", "function", range_),
    "timedelta": Callee("timedelta", "function", duration),
}
