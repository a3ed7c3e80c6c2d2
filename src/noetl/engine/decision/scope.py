"""Names that server-side templates see, and traced evaluation.

Bare names resolve in this order: args, ctx, iter, results of steps, workload. Tested in tests/unit/engine/routing/test_route.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count, islice
from math import isfinite
from typing import Any
from uuid import UUID

from noetl.dsl.secret_names import is_secret_name
from noetl.engine.decision.evaluations import Evaluations
from noetl.engine.decision.needs_load import NOTHING, Resolved, view
from noetl.engine.plan.plan import template
from noetl.engine.state.execution import Execution
from noetl.engine.state.writes import plain
from noetl.expr import Budget, Envelope, TemplateError, Undefined
from noetl.model.events import EVENT_TYPES, names_of
from noetl.model.ids import job
from noetl.model.outcome import whole
from noetl.model.refs import expanded, is_ref

_SHOWN_BYTES = 200
_NEVER_SECRET = frozenset({bool, int, float, type(None)})


class EventName(str):
    """The name of an event; equals its older names too."""

    __slots__ = ("_names",)

    def __new__(cls, name: str) -> EventName:
        interned = _EVENT_NAMES.get(name)
        if interned is not None:
            return interned
        event_name = super().__new__(cls, name)
        names = frozenset(names_of(name))
        event_name._names = names.union(names_of("step.done")) if name == "loop.done" else names
        return event_name

    _names: frozenset[str]

    def __eq__(self, other: object) -> bool:
        return other in self._names if isinstance(other, str) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


_EVENT_NAMES: dict[str, EventName] = {}
_EVENT_NAMES |= {name: EventName(name) for name in EVENT_TYPES}


class Scope(Mapping[str, Any]):
    """Root names for one decision: fixed names first, then bare names."""

    __slots__ = ("_args", "_fixed", "_iter", "_own", "_resolved", "_state", "evaluations")

    def __init__(
        self,
        state: Execution,
        args: Mapping[str, Any],
        own: Mapping[str, Any] | None = None,
        resolved: Resolved = NOTHING,
        evaluations: Evaluations | None = None,
        **fixed: Any,
    ) -> None:
        self.evaluations = evaluations or Evaluations()  # of the decision
        self._state = state
        self._resolved = resolved
        self._args = args
        self._own = own or {}  # results that are not in the state yet
        self._iter: Mapping[str, Any] = {"parent": state.iter} if state.iter is not None else {}
        self._fixed = {
            "workload": state.workload,
            "ctx": state.ctx,
            "vars": state.ctx,
            "args": args,
            "input": args,
            "iter": self._iter,
            "execution_id": state.execution_id,
            "job": job(state.execution_id),
            **fixed,
        }

    def __getitem__(self, name: str) -> Any:
        if name in self._fixed:
            return self._fixed[name]
        for place in (self._args, self._state.ctx, self._iter):
            if name in place:
                return place[name]
        if name in self._own:
            return view(self._own[name], name, self._resolved)
        ended = self._state.ended.get(name)
        if ended is not None and ended.status != "skipped":
            return view(ended.result, name, self._resolved)
        return self._state.workload[name]

    def __iter__(self) -> Any:
        return iter(
            {*self._fixed, *self._args, *self._state.ctx, *self._own, *self._state.ended, *self._state.workload}
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)


def envelope(status: str, result: Any, shown: Any, error: Mapping[str, Any] | None) -> Envelope:
    """Return `outcome` for a router; `shown` is the result as templates see it."""
    data: dict[str, Any] = {"status": status, "result": shown, "error": None, "meta": {}}
    if error is not None:
        data["error"] = whole(error)
    kept = expanded(result)
    if is_ref(kept):
        data["ref"] = kept["ref"]
    return Envelope(data)


def functions(state: Execution, at: int) -> Mapping[str, Callable[..., Any]]:
    """Return the template functions that depend on the execution and the time."""

    def ended(name: str, *statuses: str) -> bool:
        last = state.ended.get(name)
        return last is not None and last.status in statuses

    ordinal = count(1)

    def gen_uuid() -> str:
        seed = f"{state.execution_id}:{state.seq}:{next(ordinal)}".encode()
        return str(UUID(bytes=blake2b(seed, digest_size=16).digest(), version=4))

    return {
        "gen_uuid": gen_uuid,
        "now": lambda: datetime.fromtimestamp(at / 1000, UTC),
        "done": lambda name: ended(name, "ok", "error"),
        "ok": lambda name: ended(name, "ok"),
        "fail": lambda name: ended(name, "error"),
    }


class Verdict:
    """The result of a condition: its truth, the values it read, its error."""

    __slots__ = ("error", "holds", "read")

    def __init__(self, holds: bool, read: Mapping[str, Any] | None = None, error: str | None = None) -> None:
        self.holds = holds
        self.read = read or {}
        self.error = error


def test(condition: Any, scope: Scope, calls: Mapping[str, Callable[..., Any]], limit_ms: Any) -> Verdict:
    """Evaluate a condition: a boolean or a template; else false, with an error."""
    if isinstance(condition, bool):
        return Verdict(condition)
    compiled = template(condition) if isinstance(condition, str) else None
    if compiled is None:
        return Verdict(False, error=f"the condition {condition!r} is not a template")

    def judge(budget: Budget) -> Verdict:
        value, read = compiled.evaluate_traced(scope, functions=calls, budget=budget)
        holds = compiled.test(scope, budget, functions=calls) if compiled.kind == "text" else bool(value)
        return Verdict(holds, {path: _shown(found, path) for path, found in read.items()})

    try:
        return scope.evaluations.run(compiled.source, limit_ms, judge)
    except TemplateError as error:
        return Verdict(False, error=error.message)


def render(data: Any, scope: Scope, calls: Mapping[str, Callable[..., Any]]) -> Any:
    """Render every template in a value. Raises TemplateError."""
    if isinstance(data, str):
        compiled = template(data)
        if compiled is None:
            return data
        evaluate = compiled.evaluate
        return scope.evaluations.run(data, None, lambda budget: evaluate(scope, functions=calls, budget=budget))
    if isinstance(data, Mapping):
        return {key: render(value, scope, calls) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [render(value, scope, calls) for value in data]
    return data


def number(value: Any, scope: Scope, calls: Mapping[str, Callable[..., Any]]) -> float | None:
    """Return a number that may be written as a template; None if it is not a number."""
    if isinstance(value, bool):
        return None
    try:
        found = float(render(value, scope, calls) if isinstance(value, str) else value)
    except (TemplateError, TypeError, ValueError, OverflowError):
        return None
    return found if isfinite(found) else None


def _shown(value: Any, path: str) -> Any:
    if type(value) in _NEVER_SECRET:
        return value
    if isinstance(value, Undefined):
        return "(undefined)"
    if not isinstance(value, str) and _is_long(value):
        return _counted(value)
    value = plain(value)
    if isinstance(value, str) and value and is_secret_name(path):
        return "(secret)"
    if isinstance(value, str) and len(value) > _SHOWN_BYTES:
        return value[:_SHOWN_BYTES] + "…"
    return _counted(value) if isinstance(value, list | dict) and len(repr(value)) > _SHOWN_BYTES else value


def _counted(value: Any) -> str:
    return f"({'map' if isinstance(value, Mapping) else 'list'} of {len(value)})"


def _is_long(value: Any) -> bool:
    """Whether a value is surely too long to be shown; a large one is not walked whole."""
    size, level = 0, [value]
    while level and size <= _SHOWN_BYTES:
        item = level.pop()
        size += len(item) if isinstance(item, str) else 1
        if isinstance(item, Mapping):
            size += len(item)
            level.extend(islice(item.values(), _SHOWN_BYTES))
        elif isinstance(item, list | tuple):
            size += len(item)
            level.extend(item[:_SHOWN_BYTES])
    return size > _SHOWN_BYTES
