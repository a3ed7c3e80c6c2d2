"""Closures of compiled templates, light or not, and offsets of errors inside them.

A *light* closure takes the scope. Its cost is bounded by the template's length, so it draws nothing. All others take the
evaluation's `Context`; `lift` adapts a light closure. Tested in tests/unit/expr/compiler/test_expressions.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from noetl.expr.errors import EvaluationError
from noetl.expr.lowering import tree

Run = Callable[[Any], Any]
MISSING: Final = object()
# Raised by Python when data does not fit an operation: an error of the template, never of the engine.
FAILURES: Final = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, UnicodeError, re.error)


class Code(NamedTuple):
    """A closure, and whether it is light."""

    run: Run
    light: bool


Compile = Callable[[tree.Expr], Code]


def lift(code: Code) -> Run:
    """Return a closure that takes a `Context`."""
    if not code.light:
        return code.run
    run = code.run
    return lambda context: run(context.scope)


def align(*codes: Code) -> tuple[tuple[Run, ...], bool]:
    """Return closures that take the same argument, and whether that is the scope."""
    if all(code.light for code in codes):
        return tuple(code.run for code in codes), True
    return tuple(lift(code) for code in codes), False


def call_error(what: str, error: Exception, offset: int) -> EvaluationError:
    """Convert a Python exception to a template error."""
    return EvaluationError(f"{what} failed: {error}", offset)
