"""What a task expects and returns: `assert: {expects, returns}`.

A name may be a path with dots. An input that is null is not given; a key of a result may hold null. Tested in
tests/unit/engine/tasks/test_assertions.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from noetl.dsl.analysis.scopes import SCOPES
from noetl.dsl.tree.playbook import Value
from noetl.expr import Result
from noetl.model.outcome import Outcome, failed

_SHOWN: Final = 10
_MISSING: Final = object()


class Assertions(Struct, frozen=True):
    """Paths of the inputs that must be given, and of the keys that must come back."""

    expects: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()

    def refused(self, label: str, inputs: Iterable[Mapping[str, Any]], names: Mapping[str, Any]) -> Outcome | None:
        """Return the failure of a task that lacks inputs; None if all are given."""
        given = tuple(inputs)
        missing = [path for path in self.expects if not _is_given(path, given, names)]
        if not missing:
            return None
        known = sorted(name for name, value in given[0].items() if value is not None)
        return _failed(f"the task `{label}` expects {_list('input', missing)}, which it was not given; it got", known)

    def checked(self, label: str, outcome: Outcome) -> Outcome:
        """Return the outcome of a task, which fails if its result lacks keys."""
        missing = [path for path in self.returns if _found(outcome.result, path) is _MISSING]
        if outcome.status != "ok" or not missing:
            return outcome
        known = sorted(map(str, outcome.result)) if isinstance(outcome.result, Mapping) else []
        told = _failed(f"the task `{label}` must return {_list('key', missing)}; it returned", known)
        return replace(told, result=outcome.result, meta=outcome.meta, helpers=outcome.helpers)


def assertions(given: Value | None) -> Assertions | None:
    """Return what the settings of a task assert."""
    data = given.data if given is not None else None
    if not isinstance(data, Mapping):
        return None
    return Assertions(_paths(data.get("expects")), _paths(data.get("returns")))


def _paths(given: Any) -> tuple[str, ...]:
    listed = given if isinstance(given, list) else [] if given is None else [given]
    return tuple(str(path) for path in listed)


def _is_given(path: str, inputs: Iterable[Mapping[str, Any]], names: Mapping[str, Any]) -> bool:
    """Return whether an input is given, or a path that begins with a scope is set."""
    if any(_found(one, path) not in (None, _MISSING) for one in inputs):
        return True
    scope, dot, rest = path.partition(".")
    held = names.get(scope) if dot and scope in SCOPES else None
    return isinstance(held, Mapping) and _found(held, rest) not in (None, _MISSING)


def _found(data: Any, path: str) -> Any:
    """Return the value at a path; its first part follows the rules of results."""
    if isinstance(data, Mapping) and path in data:
        return data[path]
    first, *more = path.removeprefix("$.").split(".")
    try:
        value = Result(data)[first]
    except KeyError:
        return _MISSING
    for part in more:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def _list(what: str, paths: list[str]) -> str:
    named = ", ".join(f"`{path}`" for path in paths[:_SHOWN])
    return f"the {what if len(paths) == 1 else what + 's'} {named}"


def _failed(message: str, known: list[str]) -> Outcome:
    there = ", ".join(f"`{name}`" for name in known[:_SHOWN]) or "none"
    return failed("schema", f"{message} {there}", code="ASSERT")
