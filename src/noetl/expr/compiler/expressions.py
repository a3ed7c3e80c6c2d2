"""Compile expressions of our tree into closures over plain data.

When traced, every read records its value. Tested in tests/unit/expr/compiler/test_expressions.py and test_differential.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from noetl.expr.compiler.calls import apply_code, call_code, method_code
from noetl.expr.compiler.closures import MISSING, Code, Run, align, lift
from noetl.expr.compiler.comparisons import compare_code
from noetl.expr.errors import EvaluationError, TemplateError
from noetl.expr.lowering import tree
from noetl.expr.names import dotted
from noetl.expr.runtime.budget import Context
from noetl.expr.runtime.iteration import number
from noetl.expr.runtime.lookup import lookup, path_reader, walk
from noetl.expr.runtime.operators import ARITHMETIC, negate
from noetl.expr.runtime.undefined import NO_ELSE, Undefined
from noetl.expr.runtime.value_types import kind_of

_KEYS: Final = (str, int, float, bool, type(None))


class Compiler:
    """Compiles one template; `weight` counts its nodes, the cost of one pass."""

    def __init__(self, traced: bool = False) -> None:
        self.traced = traced
        self.weight = 0
        self._kinds: dict[type, Callable[[Any], Code]] = {
            tree.Const: lambda node: _constant(node.value),
            tree.Reading: self._reading,
            tree.Local: self._local,
            tree.Items: self._items,
            tree.Item: self._item,
            tree.Range: self._range,
            tree.Sequence: self._sequence,
            tree.Pairs: self._pairs,
            tree.Unary: self._unary,
            tree.Arithmetic: self._arithmetic,
            tree.Concat: self._concat,
            tree.Compare: lambda node: compare_code(node, self.code),
            tree.All: self._all,
            tree.AnyOf: self._any,
            tree.Not: self._not,
            tree.Choice: self._choice,
            tree.Apply: lambda node: apply_code(node, self.code),
            tree.Call: lambda node: call_code(node, self.code),
            tree.Method: lambda node: method_code(node, self.code),
            tree.Get: self._get,
            tree.Fails: self._fails,
        }

    def code(self, node: tree.Expr) -> Code:
        self.weight += 1
        return self._kinds[type(node)](node)

    def run(self, node: tree.Expr) -> Run:
        """Compile a node into a closure that takes a `Context`."""
        return lift(self.code(node))

    def _reading(self, node: tree.Reading) -> Code:
        read = path_reader(node.path)
        if not self.traced:
            return Code(read, True)
        name = dotted(node.path)

        def traced(context: Context) -> Any:
            value = read(context.scope)
            if context.trace is not None:
                context.trace[name] = value
            return value

        return Code(traced, False)

    def _local(self, node: tree.Local) -> Code:
        slots, name, copied = node.slots, node.name, node.copied
        fallback = self.run(node.fallback) if node.fallback is not None else None

        def run(context: Context) -> Any:
            for slot in slots:
                value = context.locals[slot]
                if value is not MISSING:
                    return dict(value) if copied else value
            return Undefined((name,)) if fallback is None else fallback(context)

        return Code(run, False)

    def _items(self, node: tree.Items) -> Code:
        base, light = self.code(node.base)
        keys, path = node.keys, node.path
        return Code(lambda x: walk(base(x), keys, path), light)

    def _item(self, node: tree.Item) -> Code:
        if self.traced and isinstance(node.base, tree.Reading):
            return self._traced_item(node.base, node.key)
        (base, key), light = align(self.code(node.base), self.code(node.key))
        path = node.path
        return Code(lambda x: lookup(base(x), key(x), path), light)

    def _traced_item(self, base: tree.Reading, key: tree.Expr) -> Code:
        read, find, path = path_reader(base.path), self.run(key), base.path

        def run(context: Context) -> Any:
            found = find(context)
            value = lookup(read(context.scope), found, path)
            if context.trace is not None:
                element = found if isinstance(found, str | int) else f"({kind_of(found)})"
                context.trace[dotted((*path, element))] = value
            return value

        return Code(run, False)

    def _range(self, node: tree.Range) -> Code:
        base = self.run(node.base)
        bounds = [self.run(bound) if bound is not None else None for bound in node.bounds]
        offset = node.offset

        def run(context: Context) -> Any:
            value = base(context)
            try:
                start, stop, step = (bound if bound is None else _bound(bound(context)) for bound in bounds)
                if isinstance(value, Undefined):
                    return value.below("[…]")
                if step == 0:
                    raise EvaluationError("the step of a slice must not be zero")
                if not isinstance(value, list | tuple | str):
                    raise EvaluationError(f"cannot slice {kind_of(value)}")
                context.produce(len(range(*slice(start, stop, step).indices(len(value)))))
                return value[start:stop:step]
            except TemplateError as error:
                error.at(offset)
                raise

        return Code(run, False)

    def _sequence(self, node: tree.Sequence) -> Code:
        codes = [self.code(item) for item in node.items]
        if node.is_tuple:
            parts = tuple(lift(code) for code in codes)
            return Code(lambda context: tuple([part(context) for part in parts]), False)
        runs, light = align(*codes)
        return Code(lambda x: [run(x) for run in runs], light)

    def _pairs(self, node: tree.Pairs) -> Code:
        keys, values = (
            tuple(self.run(pair[0]) for pair in node.pairs),
            tuple(self.run(pair[1]) for pair in node.pairs),
        )
        offset = node.offset

        def run(context: Context) -> Any:
            made: dict[Any, Any] = {}
            for key, value in zip(keys, values, strict=True):
                name = key(context)
                if not isinstance(name, _KEYS):
                    raise EvaluationError(f"a key cannot be {kind_of(name)}", offset)
                made[name] = value(context)
            return made

        return Code(run, False)

    def _unary(self, node: tree.Unary) -> Code:
        value, sign, offset = self.run(node.value), node.sign, node.offset

        def run(context: Context) -> Any:
            try:
                return negate(context, sign, value(context))
            except TemplateError as error:
                error.at(offset)
                raise

        return Code(run, False)

    def _arithmetic(self, node: tree.Arithmetic) -> Code:
        first, offset = self.run(node.first), node.offset
        rest = tuple((ARITHMETIC[sign], self.run(operand)) for sign, operand in node.rest)

        def run(context: Context) -> Any:
            try:
                value = first(context)
                for operate, operand in rest:
                    value = operate(context, value, operand(context))
                return value
            except TemplateError as error:
                error.at(offset)
                raise

        return Code(run, False)

    def _concat(self, node: tree.Concat) -> Code:
        parts, offset = tuple(self.run(part) for part in node.parts), node.offset

        def run(context: Context) -> Any:
            try:
                texts = [context.text(part(context)) for part in parts]
                context.produce(sum(map(len, texts)))
                return "".join(texts)
            except TemplateError as error:
                error.at(offset)
                raise

        return Code(run, False)

    def _all(self, node: tree.All) -> Code:
        return self._first(node.parts, wanted=False)

    def _any(self, node: tree.AnyOf) -> Code:
        return self._first(node.parts, wanted=True)

    def _first(self, parts: tuple[tree.Expr, ...], wanted: bool) -> Code:
        """Return the first part that is `wanted`, else the last one, like `or` and `and`."""
        runs, light = align(*(self.code(part) for part in parts))
        if len(runs) == 2:
            first, second = runs
            return Code((lambda x: first(x) or second(x)) if wanted else (lambda x: first(x) and second(x)), light)

        def run(x: Any) -> Any:
            value: Any = not wanted
            for part in runs:
                value = part(x)
                if bool(value) is wanted:
                    break
            return value

        return Code(run, light)

    def _not(self, node: tree.Not) -> Code:
        value, light = self.code(node.value)
        return Code(lambda x: not value(x), light)

    def _choice(self, node: tree.Choice) -> Code:
        codes = [self.code(part) for case in node.cases for part in case]
        codes.append(self.code(node.otherwise) if node.otherwise is not None else _constant(Undefined(NO_ELSE)))
        runs, light = align(*codes)
        cases, otherwise = tuple(zip(runs[:-1:2], runs[1:-1:2], strict=True)), runs[-1]

        def run(x: Any) -> Any:
            for test, value in cases:
                if test(x):
                    return value(x)
            return otherwise(x)

        return Code(run, light)

    def _get(self, node: tree.Get) -> Code:
        (read, fallback), light = align(self.code(node.read), self.code(node.fallback))

        def run(x: Any) -> Any:
            value = read(x)
            return fallback(x) if isinstance(value, Undefined) else value

        return Code(run, light)

    def _fails(self, node: tree.Fails) -> Code:
        problem = node.problem

        def run(_: Any) -> Any:
            raise EvaluationError(problem.message, problem.offset)

        return Code(run, True)


def _constant(value: Any) -> Code:
    return Code(lambda _: value, True)


def _bound(value: Any) -> int | None:
    return None if value is None else number("a bound", value)
