"""Compile comparisons. Those with constants are light and as fast as Python's.

Tested in tests/unit/expr/compiler/test_expressions.py and test_operators.py.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from noetl.expr.compiler.closures import Code, Compile, Run, align, lift
from noetl.expr.errors import EvaluationError, TemplateError
from noetl.expr.lowering import tree
from noetl.expr.runtime.operators import COMPARISONS
from noetl.expr.runtime.value_types import kind_of

_SCALARS: Final = (str, int, float, bool, type(None))
_NATIVE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_MIRRORED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare_code(node: tree.Compare, compile_: Compile) -> Code:
    """Compile a chain of comparisons."""
    if len(node.rest) == 1:
        sign, right = node.rest[0]
        return _single(node.first, sign, right, node.offset, compile_)
    parts: list[Code] = []
    left = node.first
    for sign, right in node.rest:
        parts.append(_single(left, sign, right, node.offset, compile_))
        left = right
    runs, light = align(*parts)

    def chain(x: Any) -> Any:
        result: Any = True
        for run in runs:
            result = run(x)
            if not result:
                break
        return result

    return Code(chain, light)


def _single(left: tree.Expr, sign: str, right: tree.Expr, offset: int, compile_: Compile) -> Code:
    if isinstance(right, tree.Sequence) and sign in {"in", "not in"} and right.items:
        constants = [item.value for item in right.items if isinstance(item, tree.Const)]
        if len(constants) == len(right.items):
            return _among(compile_(left), frozenset(constants), sign == "in")
    if isinstance(right, tree.Const) and isinstance(right.value, _SCALARS) and sign in _MIRRORED:
        return _with_constant(compile_(left), sign, right.value, offset, False)
    if isinstance(left, tree.Const) and isinstance(left.value, _SCALARS) and sign in _MIRRORED:
        return _with_constant(compile_(right), _MIRRORED[sign], left.value, offset, True)
    return _general(compile_(left), sign, compile_(right), offset)


def _among(code: Code, options: frozenset[Any], wanted: bool) -> Code:
    run = code.run

    def within(x: Any) -> bool:
        value = run(x)
        if isinstance(value, tuple):  # equals no constant, and hashing it visits everything that it contains
            return False
        try:
            return value in options or _has_other_names(value, options)
        except TypeError:  # a list or map equals no constant
            return False

    def without(x: Any) -> bool:
        return not within(x)

    return Code(within if wanted else without, code.light)


def _has_other_names(value: Any, options: frozenset[Any]) -> bool:
    """Compare a string subclass with several names (an event) with each option."""
    return isinstance(value, str) and type(value) is not str and any(value == option for option in options)


def _with_constant(code: Code, sign: str, constant: Any, offset: int, mirrored: bool) -> Code:
    run = code.run
    if sign == "==":
        return Code(lambda x: run(x) == constant, code.light)
    if sign == "!=":
        return Code(lambda x: run(x) != constant, code.light)
    return Code(_ordered(run, sign, constant, offset, mirrored), code.light)


def _ordered(run: Run, sign: str, constant: Any, offset: int, mirrored: bool) -> Run:
    native = _NATIVE[sign]

    def compare(x: Any) -> Any:
        value = run(x)
        try:
            return native(value, constant)
        except TypeError:
            shown, left, right = (_MIRRORED[sign], constant, value) if mirrored else (sign, value, constant)
            message = f"`{shown}` cannot compare {kind_of(left)} with {kind_of(right)}"
            raise EvaluationError(message, offset, "convert one of them with `| int` or `| string`") from None

    return compare


def _general(left: Code, sign: str, right: Code, offset: int) -> Code:
    first, second, compare = lift(left), lift(right), COMPARISONS[sign]

    def test(context: Any) -> Any:
        try:
            return compare(context, first(context), second(context))
        except TemplateError as error:
            error.at(offset)
            raise

    return Code(test, False)
