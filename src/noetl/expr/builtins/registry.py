"""Callables of templates: filters, tests, functions, methods, and their tables.

An implementation is a plain Python function over plain data. Its first argument is the evaluation's `Context`, from
which it draws before any work whose cost depends on the data. The first line of its docstring is the summary shown in
docs, hover and completion; its parameters are the signature. Tested in tests/unit/expr/builtins/test_registry.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

Kind = Literal["filter", "test", "function", "method"]


class Callee(Struct, frozen=True):
    """A filter, test, function or method, by name."""

    name: str
    kind: Kind
    call: Callable[..., Any]
    # Impure: the caller supplies its value (time of the event, state of a step).
    pure: bool = True

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.call) or "").split("\n", 1)[0]

    @property
    def signature(self) -> str:
        """Return its usage, such as `value | round(precision=0, method='common')`."""
        parameters = _parameters(self.call)
        skip = 1 if self.kind == "function" else 2
        arguments = ", ".join(_parameter_source(parameter) for parameter in parameters[skip:])
        if self.kind == "function":
            return f"{self.name}({arguments})"
        if self.kind == "method":
            return f"value.{self.name}({arguments})"
        called = f"{self.name}({arguments})" if arguments else self.name
        return f"value | {called}" if self.kind == "filter" else f"value is {called}"

    def misuse(self, positional: int, keywords: tuple[str, ...]) -> str | None:
        """Return why a call with these arguments cannot work, or None."""
        signature = _signature(self.call)
        given = [None] * (positional + (1 if self.kind == "function" else 2))
        try:
            signature.bind(*given, **dict.fromkeys(keywords))
        except TypeError as error:
            return f"`{self.name}` has wrong arguments: {error}; usage: `{self.signature}`"
        return None


@lru_cache(maxsize=512)
def _signature(call: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(call)


def _parameters(call: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(_signature(call).parameters.values())


def _parameter_source(parameter: inspect.Parameter) -> str:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    name = parameter.name.rstrip("_")
    if parameter.default is inspect.Parameter.empty:
        return name
    default = parameter.default
    written = {None: "none", True: "true", False: "false"}.get(default) if default in (None, True, False) else None
    return f"{name}={repr(default) if written is None or type(default) is int else written}"


def table(kind: Kind, *parts: Mapping[str, Callable[..., Any]]) -> Mapping[str, Callee]:
    """Build a sorted table of callables. Raises ValueError for a duplicate name."""
    merged: dict[str, Callable[..., Any]] = {}
    for part in parts:
        twice = merged.keys() & part.keys()
        if twice:
            raise ValueError(f"{kind} {sorted(twice)} is defined twice")
        merged.update(part)
    return {name: Callee(name, kind, merged[name]) for name in sorted(merged)}
