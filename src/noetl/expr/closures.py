"""What compiled templates are made of: closures, light or not, and how errors inside them get their place.

A *light* closure takes the scope itself. Its cost is bounded by the template's own length, so it draws nothing while it
runs. All others take the evaluation's `Context`. A light closure is lifted where the two meet. Tested through
tests/unit/expr/test_compile.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from noetl.expr import tree
from noetl.expr.errors import EvaluationError

Run = Callable[[Any], Any]
MISSING: Final = object()
# What Python raises when plain data does not fit an operation: an error of the template, never of the engine.
FAILURES: Final = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, UnicodeError)


class Code(NamedTuple):
    """A closure, and whether it is light."""

    run: Run
    light: bool


Compile = Callable[[tree.Expr], Code]


def lifted(code: Code) -> Run:
    """The closure as one that takes a `Context`."""
    if not code.light:
        return code.run
    run = code.run
    return lambda context: run(context.scope)


def together(*codes: Code) -> tuple[tuple[Run, ...], bool]:
    """Closures that can be called with the same argument, and whether that is the scope itself."""
    if all(code.light for code in codes):
        return tuple(code.run for code in codes), True
    return tuple(lifted(code) for code in codes), False


def failed(what: str, error: Exception, offset: int) -> EvaluationError:
    """The error for a template, made of one of Python's."""
    return EvaluationError(f"{what} failed: {error}", offset)
