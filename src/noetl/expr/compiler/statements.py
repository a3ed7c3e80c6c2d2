"""Compile statements: text, `{{ … }}` within text, `if`, `for` and `set`.

A statement becomes a closure over the evaluation's `Context` and the list that collects the text. Every iteration of a
loop draws the cost of one pass through its body. Tested in tests/unit/expr/compiler/test_statements.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noetl.expr.compiler.closures import MISSING, Run
from noetl.expr.compiler.expressions import Compiler
from noetl.expr.errors import EvaluationError, TemplateError
from noetl.expr.lowering import tree
from noetl.expr.runtime.budget import Context
from noetl.expr.runtime.iteration import items_of
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.runtime.value_types import kind_of

Step = Callable[[Context, list[str]], None]


def text_code(body: tree.Body, compiler: Compiler) -> Callable[[Context], str]:
    """Compile a whole template into a closure that renders text."""
    if all(isinstance(statement, tree.Text | tree.Output) for statement in body):
        return _flat(body, compiler)
    steps = steps_of(body, compiler)

    def render(context: Context) -> str:
        out: list[str] = []
        for step in steps:
            step(context, out)
        return "".join(out)

    return render


def _flat(body: tree.Body, compiler: Compiler) -> Callable[[Context], str]:
    """Compile text and `{{ … }}` only, the common case: draws once, at the end."""
    compiler.weight += len(body)
    parts = [_part(statement, compiler) for statement in body if isinstance(statement, tree.Text | tree.Output)]

    def render(context: Context) -> str:
        texts: list[str] = []
        for text, run, offset in parts:
            if run is None:
                texts.append(text)
                continue
            try:
                texts.append(context.text(run(context)))
            except TemplateError as error:
                error.at(offset)
                raise
        context.produce(sum(map(len, texts)))
        return "".join(texts)

    return render


def _part(statement: tree.Text | tree.Output, compiler: Compiler) -> tuple[str, Run | None, int]:
    if isinstance(statement, tree.Text):
        return statement.text, None, 0
    return "", compiler.run(statement.value), statement.offset


def steps_of(body: tree.Body, compiler: Compiler) -> tuple[Step, ...]:
    """Compile a body; each closure appends to the output list."""
    return tuple(_step(statement, compiler) for statement in body)


def _step(node: tree.Statement, compiler: Compiler) -> Step:
    compiler.weight += 1
    if isinstance(node, tree.Text):
        return _text(node.text)
    if isinstance(node, tree.Output):
        return _output(node, compiler)
    if isinstance(node, tree.If):
        return _if(node, compiler)
    if isinstance(node, tree.For):
        return _for(node, compiler)
    if isinstance(node, tree.Set):
        return _set(node, compiler)
    if isinstance(node, tree.SetBlock):
        return _set_block(node, compiler)
    if isinstance(node, tree.SetField):
        return _set_field(node, compiler)
    return _refused(node)


def _refused(node: tree.Refused) -> Step:
    problem = node.problem

    def step(_context: Context, _out: list[str]) -> None:
        raise EvaluationError(problem.message, problem.offset)

    return step


def _text(text: str) -> Step:
    size = len(text)

    def step(context: Context, out: list[str]) -> None:
        context.produce(size)
        out.append(text)

    return step


def _output(node: tree.Output, compiler: Compiler) -> Step:
    value, offset = compiler.run(node.value), node.offset

    def step(context: Context, out: list[str]) -> None:
        try:
            text = context.text(value(context))
            context.produce(len(text))
        except TemplateError as error:
            error.at(offset)
            raise
        out.append(text)

    return step


def _if(node: tree.If, compiler: Compiler) -> Step:
    cases = tuple((compiler.run(test), steps_of(body, compiler)) for test, body in node.cases)
    otherwise = steps_of(node.otherwise, compiler)

    def step(context: Context, out: list[str]) -> None:
        chosen = otherwise
        for test, steps in cases:
            if test(context):
                chosen = steps
                break
        for inner in chosen:
            inner(context, out)

    return step


def _for(node: tree.For, compiler: Compiler) -> Step:
    values, offset, target, loop, fresh = compiler.run(node.values), node.offset, node.target, node.loop, node.fresh
    before = compiler.weight
    test = compiler.run(node.test) if node.test is not None else None
    body = steps_of(node.body, compiler)
    weight = compiler.weight - before
    otherwise = steps_of(node.otherwise, compiler)

    def chosen(context: Context) -> list[Any] | tuple[Any, ...]:
        items = items_of(context, values(context))
        if test is None:
            return items
        kept: list[Any] = []
        for item in items:
            context.spend(weight)
            _assign(context, target, item)
            if test(context):
                kept.append(item)
        return kept

    def step(context: Context, out: list[str]) -> None:
        try:
            items = chosen(context)
            for index, item in enumerate(items):
                context.spend(weight)
                _assign(context, target, item)
                for slot in fresh:
                    context.locals[slot] = MISSING
                if loop is not None:
                    context.locals[loop] = _loop(items, index)
                for inner in body:
                    inner(context, out)
        except TemplateError as error:
            error.at(offset)
            raise
        if not items:
            for inner in otherwise:
                inner(context, out)

    return step


def _loop(items: list[Any] | tuple[Any, ...], index: int) -> dict[str, Any]:
    count = len(items)
    return {
        "index": index + 1,
        "index0": index,
        "revindex": count - index,
        "revindex0": count - index - 1,
        "first": index == 0,
        "last": index == count - 1,
        "length": count,
        "previtem": items[index - 1] if index else Undefined(("loop", "previtem")),
        "nextitem": items[index + 1] if index + 1 < count else Undefined(("loop", "nextitem")),
    }


def _assign(context: Context, target: tree.Target, value: Any) -> None:
    if isinstance(target, int):
        context.locals[target] = value
        return
    if not isinstance(value, list | tuple | str):
        raise EvaluationError(f"{kind_of(value)} cannot be unpacked into {len(target)} names")
    if len(value) != len(target):
        raise EvaluationError(f"{len(value)} items cannot be unpacked into {len(target)} names")
    for inner, item in zip(target, value, strict=True):
        _assign(context, inner, item)


def _set(node: tree.Set, compiler: Compiler) -> Step:
    value, target, offset = compiler.run(node.value), node.target, node.offset

    def step(context: Context, _out: list[str]) -> None:
        try:
            _assign(context, target, value(context))
        except TemplateError as error:
            error.at(offset)
            raise

    return step


def _set_block(node: tree.SetBlock, compiler: Compiler) -> Step:
    steps, slot, target, offset = steps_of(node.body, compiler), node.slot, node.target, node.offset
    filters = compiler.run(node.filters) if node.filters is not None else None

    def step(context: Context, _out: list[str]) -> None:
        inner: list[str] = []
        for made in steps:
            made(context, inner)
        value: Any = "".join(inner)
        if filters is not None:
            context.locals[slot] = value
            value = filters(context)
        try:
            _assign(context, target, value)
        except TemplateError as error:
            error.at(offset)
            raise

    return step


def _set_field(node: tree.SetField, compiler: Compiler) -> Step:
    slot, field, value, offset = node.slot, node.field, compiler.run(node.value), node.offset

    def step(context: Context, _out: list[str]) -> None:
        fields = context.locals[slot]
        if fields is MISSING:
            raise EvaluationError("the namespace is not set yet", offset)
        fields[field] = value(context)

    return step
