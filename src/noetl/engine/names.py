"""The names that server-side templates see, and their evaluation with a record of what was read.

Bare names resolve: args, ctx, iter, results of steps, workload. Worker-side names are the pipeline's. Tested in
tests/unit/engine/test_names.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from noetl.engine.plan import Plan, template
from noetl.engine.state import Execution
from noetl.expr import Envelope, Result, TemplateError, Undefined
from noetl.model.events import EVENT_TYPES

_SHOWN_BYTES = 200


class EventName(str):
    """The name of an event, which also equals its older names."""

    __slots__ = ("_names",)

    def __new__(cls, name: str) -> EventName:
        made = super().__new__(cls, name)
        kind = EVENT_TYPES.get(name)
        names = frozenset({name, *(kind.older if kind else ())})
        made._names = names | {"step.done", "step.exit", "call.done"} if name == "loop.done" else names
        return made

    _names: frozenset[str]

    def __eq__(self, other: object) -> bool:
        return other in self._names if isinstance(other, str) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class Scope(Mapping[str, Any]):
    """Root names for one decision: fixed ones first, then bare names in their order."""

    __slots__ = ("_args", "_fixed", "_iter", "_state")

    def __init__(self, state: Execution, args: Mapping[str, Any], **fixed: Any) -> None:
        self._state = state
        self._args = args
        self._iter = state.iter or {}
        self._fixed = {
            "workload": state.workload,
            "ctx": state.ctx,
            "vars": state.ctx,
            "args": args,
            "input": args,
            "iter": self._iter,
            "execution_id": state.execution_id,
            "job": {"uuid": state.execution_id},
            **fixed,
        }

    def __getitem__(self, name: str) -> Any:
        if name in self._fixed:
            return self._fixed[name]
        for place in (self._args, self._state.ctx, self._iter):
            if name in place:
                return place[name]
        ended = self._state.ended.get(name)
        if ended is not None:
            return Result(ended.result)
        return self._state.workload[name]

    def __iter__(self) -> Any:
        return iter({*self._fixed, *self._args, *self._state.ctx, *self._state.ended, *self._state.workload})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def envelope(status: str, result: Any, error: Mapping[str, Any] | None) -> Envelope:
    """Give `outcome` of a step as its router sees it."""
    return Envelope({"status": status, "result": result, "error": error})


def functions(state: Execution, at: int) -> Mapping[str, Callable[..., Any]]:
    """Give the functions that depend on the execution and the moment."""

    def ended(name: str, *statuses: str) -> bool:
        found = state.ended.get(name)
        return found is not None and found.status in statuses

    return {
        "now": lambda: datetime.fromtimestamp(at / 1000, UTC),
        "done": lambda name: ended(name, "ok", "error"),
        "ok": lambda name: ended(name, "ok"),
        "fail": lambda name: ended(name, "error"),
    }


class Verdict:
    """What a condition came to: its truth, what it read, and why it could not be evaluated."""

    __slots__ = ("error", "holds", "read")

    def __init__(self, holds: bool, read: Mapping[str, Any] | None = None, error: str | None = None) -> None:
        self.holds = holds
        self.read = read or {}
        self.error = error


def test(condition: Any, scope: Scope, calls: Mapping[str, Callable[..., Any]]) -> Verdict:
    """Evaluate a condition: a flag, or a template; anything else is false with an error."""
    if isinstance(condition, bool):
        return Verdict(condition)
    compiled = template(condition) if isinstance(condition, str) else None
    if compiled is None:
        return Verdict(False, error=f"the condition {condition!r} is not a template")
    try:
        value, read = compiled.evaluate_traced(scope, functions=calls)
        holds = compiled.test(scope, functions=calls) if compiled.kind == "text" else bool(value)
    except TemplateError as error:
        return Verdict(False, error=error.message)
    return Verdict(holds, {path: _shown(found) for path, found in read.items()})


def render(data: Any, scope: Scope, calls: Mapping[str, Callable[..., Any]]) -> Any:
    """Render every template of a value; raises TemplateError, also for an undefined value."""
    if isinstance(data, str):
        compiled = template(data)
        return data if compiled is None else compiled.evaluate(scope, functions=calls)
    if isinstance(data, Mapping):
        return {key: render(value, scope, calls) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [render(value, scope, calls) for value in data]
    return data


def _shown(value: Any) -> Any:
    if isinstance(value, Undefined):
        return "(undefined)"
    if isinstance(value, str) and len(value) > _SHOWN_BYTES:
        return value[:_SHOWN_BYTES] + "…"
    if isinstance(value, list | dict) and len(repr(value)) > _SHOWN_BYTES:
        return f"({'list' if isinstance(value, list) else 'map'} of {len(value)})"
    return value
