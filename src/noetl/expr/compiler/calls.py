"""Compile calls of filters, tests, functions and methods, with their arguments.

An error in a call names the callable and its offset. Tested in tests/unit/expr/compiler/test_expressions.py and test_filters.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from noetl.expr.builtins.methods import method_of
from noetl.expr.compiler.closures import FAILURES, Code, Compile, Run, align, call_error, lift
from noetl.expr.errors import EvaluationError, TemplateError
from noetl.expr.lowering import tree
from noetl.expr.runtime.budget import Context
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.runtime.value_types import kind_of

# These never use the context, so they can be called without one.
_FREE_FILTERS: Final = frozenset({"d", "default", "length", "count", "bool", "abs", "raw", "safe"})
_FREE_TESTS: Final = frozenset(
    {"defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number", "string", "mapping",
     "sequence", "iterable", "date", "callable", "escaped", "even", "odd"}
)  # fmt: skip

ArgumentEvaluator = Callable[[Any], tuple[list[Any], dict[str, Any]]]


def apply_code(node: tree.Apply, compile_: Compile) -> Code:
    """Compile a filter or test."""
    free = _FREE_FILTERS if node.callee.kind == "filter" else _FREE_TESTS
    what = f"`{node.callee.name}`"
    call, arguments, offset = node.callee.call, node.arguments, node.offset
    plain = not (arguments.keywords or arguments.more or arguments.more_keywords)
    value = compile_(node.value)
    if node.callee.name in free and plain:
        codes = [value, *(compile_(argument) for argument in arguments.positional)]
        runs, light = align(*codes)
        if node.callee.name in {"d", "default"} and len(runs) == 2:
            return Code(_default(*runs), light)
        return Code(_free(call, runs, what, offset), light)
    if plain and len(arguments.positional) <= 1:
        rest = tuple(lift(compile_(argument)) for argument in arguments.positional)
        return Code(_short(call, lift(value), rest, what, offset), False)
    return Code(_full(call, lift(value), compile_arguments(arguments, compile_), what, offset), False)


def _default(value: Run, fallback: Run) -> Run:
    def run(x: Any) -> Any:
        found = value(x)
        return fallback(x) if isinstance(found, Undefined) else found

    return run


def _free(call: Callable[..., Any], runs: tuple[Run, ...], what: str, offset: int) -> Run:
    if len(runs) == 1:
        (value,) = runs

        def alone(x: Any) -> Any:
            try:
                return call(None, value(x))
            except TemplateError as error:
                error.at(offset)
                raise

        return alone

    def run(x: Any) -> Any:
        try:
            return call(None, *[run(x) for run in runs])
        except TemplateError as error:
            error.at(offset)
            raise
        except FAILURES as error:
            raise call_error(what, error, offset) from error

    return run


def _short(call: Callable[..., Any], value: Run, rest: tuple[Run, ...], what: str, offset: int) -> Run:
    if rest:
        (argument,) = rest

        def one(context: Context) -> Any:
            try:
                return call(context, value(context), argument(context))
            except TemplateError as error:
                error.at(offset)
                raise
            except FAILURES as error:
                raise call_error(what, error, offset) from error

        return one

    def none(context: Context) -> Any:
        try:
            return call(context, value(context))
        except TemplateError as error:
            error.at(offset)
            raise
        except FAILURES as error:
            raise call_error(what, error, offset) from error

    return none


def _full(call: Callable[..., Any], value: Run, gather: ArgumentEvaluator, what: str, offset: int) -> Run:
    def run(context: Context) -> Any:
        try:
            positional, named = gather(context)
            return call(context, value(context), *positional, **named)
        except TemplateError as error:
            error.at(offset)
            raise
        except FAILURES as error:
            raise call_error(what, error, offset) from error

    return run


def compile_arguments(arguments: tree.Arguments, compile_: Compile) -> ArgumentEvaluator:
    """Return a closure that evaluates arguments into a list and a map."""
    positional = [lift(compile_(argument)) for argument in arguments.positional]
    named = [(name, lift(compile_(argument))) for name, argument in arguments.keywords]
    more = lift(compile_(arguments.more)) if arguments.more is not None else None
    more_named = lift(compile_(arguments.more_keywords)) if arguments.more_keywords is not None else None

    def gather(context: Context) -> tuple[list[Any], dict[str, Any]]:
        values = [run(context) for run in positional]
        keywords = {name: run(context) for name, run in named}
        if more is not None:
            values.extend(_spread(context, more(context)))
        if more_named is not None:
            keywords.update(_spread_map(context, more_named(context)))
        return values, keywords

    return gather


def _spread(context: Context, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple | Undefined):
        raise EvaluationError(f"`*` takes a list of arguments, not {kind_of(value)}")
    context.spend(len(value))
    return list(value)


def _spread_map(context: Context, value: Any) -> dict[str, Any]:
    if isinstance(value, Undefined):
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise EvaluationError("`**` takes a map of named arguments")
    context.spend(len(value))
    return dict(value)


def call_code(node: tree.Call, compile_: Compile) -> Code:
    call, gather, offset = node.callee.call, compile_arguments(node.arguments, compile_), node.offset
    what = f"`{node.callee.name}()`"

    def run(context: Context) -> Any:
        try:
            positional, named = gather(context)
            return call(context, *positional, **named)
        except TemplateError as error:
            error.at(offset)
            raise
        except FAILURES as error:
            raise call_error(what, error, offset) from error

    return Code(run, False)


def method_code(node: tree.Method, compile_: Compile) -> Code:
    """Compile a method call; the value's type selects the method."""
    value, gather = lift(compile_(node.value)), compile_arguments(node.arguments, compile_)
    name, offset = node.name, node.offset
    what = f"`.{name}()`"

    def run(context: Context) -> Any:
        try:
            base = value(context)
            call = method_of(base, name)
            positional, named = gather(context)
            return call(context, base, *positional, **named)
        except TemplateError as error:
            error.at(offset)
            raise
        except FAILURES as error:
            raise call_error(what, error, offset) from error

    return Code(run, False)
