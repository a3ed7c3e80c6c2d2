"""Partial evaluation of templates over incomplete data.

Conditions are three-valued: `a and b` is false as soon as one of them is. An answer holds for every scope that agrees
with the known values, if the evaluation there does not fail. Finds conditions that are constant or decided by the kind of
event alone. The value of an impure function may be known under its call as written: `done('load')`. Tested in
tests/unit/expr/test_partial.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from noetl.expr.compiler.closures import MISSING, Code
from noetl.expr.compiler.expressions import Compiler
from noetl.expr.compiler.statements import text_code
from noetl.expr.errors import TemplateError
from noetl.expr.lowering import tree
from noetl.expr.names import dotted
from noetl.expr.runtime.budget import Budget, Context
from noetl.expr.runtime.lookup import read_path, walk
from noetl.expr.runtime.undefined import Path


class Unknown:
    """Type of `UNKNOWN`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


class _NotKnown(Exception):  # noqa: N818 (a signal between the functions here, not an error)
    """The evaluation needs a value that is not known."""


class _KnownCompiler(Compiler):
    def __init__(self, known: Mapping[str, Any]) -> None:
        super().__init__()
        self._known = known

    def _reading(self, node: tree.Reading) -> Code:
        value = _known_value(node.path, self._known)
        return Code(_signal, True) if value is UNKNOWN else Code(lambda _: value, True)

    def code(self, node: tree.Expr) -> Code:
        """Compile a node; an impure call is known only if `known` has it."""
        if isinstance(node, tree.Call) and not node.callee.pure:
            value = self._known.get(_call_source(node), UNKNOWN)
            return Code(_signal, True) if value is UNKNOWN else Code(lambda _: value, True)
        return super().code(node)


def _call_source(call: tree.Call) -> str:
    given = call.arguments
    constants = [value.value for value in given.positional if isinstance(value, tree.Const)]
    if given.keywords or given.more or given.more_keywords or len(constants) < len(given.positional):
        return ""
    return f"{call.callee.name}({', '.join(map(repr, constants))})"


def _signal(_: Any) -> Any:
    raise _NotKnown


def _known_value(path: Path, known: Mapping[str, Any]) -> Any:
    for end in range(len(path), 0, -1):
        name = dotted(path[:end])
        if name not in known:
            continue
        value = known[name]
        if value is UNKNOWN:
            return UNKNOWN  # explicitly unknown, whatever is known of the path above it
        if end == 1:
            return read_path({str(path[0]): value}, path)
        return walk(value, path[end:], path[:end])
    return UNKNOWN


def _attempt(run: Callable[[Context], Any], slots: int) -> Any:
    context = Context({}, Budget(100_000, 1_000_000), locals=[MISSING] * slots)
    try:
        return run(context)
    except (_NotKnown, TemplateError):
        return UNKNOWN


def value_of(node: tree.Expr, known: Mapping[str, Any]) -> Any:
    """Return the exact value of an expression, or `UNKNOWN`."""
    return _attempt(_KnownCompiler(known).run(node), 0)


def text_of(body: tree.Body, known: Mapping[str, Any], slots: int) -> Any:
    """Return the exact text of a template, or `UNKNOWN`."""
    return _attempt(text_code(body, _KnownCompiler(known)), slots)


def truth_of(node: tree.Expr, known: Mapping[str, Any]) -> bool | None:
    """Whether an expression is true; None if that depends on unknown values."""
    if isinstance(node, tree.Not):
        truth = truth_of(node.value, known)
        return None if truth is None else not truth
    if isinstance(node, tree.All | tree.AnyOf):
        deciding = isinstance(node, tree.AnyOf)
        truths = [truth_of(part, known) for part in node.parts]
        if deciding in truths:
            return deciding
        return None if None in truths else not deciding
    if isinstance(node, tree.Choice):
        return _choice(node, known)
    value = value_of(node, known)
    return None if value is UNKNOWN else bool(value)


def _choice(node: tree.Choice, known: Mapping[str, Any]) -> bool | None:
    possible: set[bool | None] = set()
    for test, value in node.cases:
        truth = truth_of(test, known)
        if truth is not False:
            possible.add(truth_of(value, known))
        if truth is True:
            break
    else:
        possible.add(False if node.otherwise is None else truth_of(node.otherwise, known))
    return possible.pop() if len(possible) == 1 else None
