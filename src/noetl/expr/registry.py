"""What templates may call: the shape of a filter, a test, a function and a method, and the tables they stand in.

An implementation is a plain Python function over plain data. Its first argument is the evaluation's `Context`, from
which it draws before it does anything whose cost depends on the data; its docstring's first line is the summary that
docs, hover and completion show; its parameters are the signature. Tested in tests/unit/expr/test_registry.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

Kind = Literal["filter", "test", "function", "method"]


class Callee(Struct, frozen=True):
    """One thing that a template may call by name."""

    name: str
    kind: Kind
    call: Callable[..., Any]
    # Impure: its value comes from whoever evaluates (the time of the event, the state of a step), never from here.
    pure: bool = True

    @property
    def summary(self) -> str:
        """One line that says what it does."""
        return (inspect.getdoc(self.call) or "").split("\n", 1)[0]

    @property
    def signature(self) -> str:
        """How it is written in a template, such as `value | round(precision=0, method='common')`."""
        parameters = _parameters(self.call)
        skip = 1 if self.kind == "function" else 2
        arguments = ", ".join(_written(parameter) for parameter in parameters[skip:])
        if self.kind == "function":
            return f"{self.name}({arguments})"
        if self.kind == "method":
            return f"value.{self.name}({arguments})"
        called = f"{self.name}({arguments})" if arguments else self.name
        return f"value | {called}" if self.kind == "filter" else f"value is {called}"

    def misuse(self, positional: int, keywords: tuple[str, ...]) -> str | None:
        """Why a call with these arguments cannot work, or None. Counts what is written, without the value itself."""
        signature = _signature(self.call)
        given = [None] * (positional + (1 if self.kind == "function" else 2))
        try:
            signature.bind(*given, **dict.fromkeys(keywords))
        except TypeError as error:
            return f"`{self.name}` is called wrongly: {error}; it is written `{self.signature}`"
        return None


@lru_cache(maxsize=512)
def _signature(call: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(call)


def _parameters(call: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(_signature(call).parameters.values())


def _written(parameter: inspect.Parameter) -> str:
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
    """A table of callees from maps of name to implementation, in alphabetical order; a name stands for one thing."""
    merged: dict[str, Callable[..., Any]] = {}
    for part in parts:
        twice = merged.keys() & part.keys()
        if twice:
            raise ValueError(f"{kind} {sorted(twice)} is defined twice")
        merged.update(part)
    return {name: Callee(name, kind, merged[name]) for name in sorted(merged)}
