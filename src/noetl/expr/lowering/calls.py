"""Lower filters, tests, functions and methods, and report unknown or wrong calls.

Tested in tests/unit/expr/lowering/test_problems.py and test_reads.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from jinja2 import nodes

from noetl.expr.builtins.functions import FUNCTIONS
from noetl.expr.builtins.methods import METHODS
from noetl.expr.builtins.registry import Callee
from noetl.expr.builtins.tables import FILTERS, TESTS
from noetl.expr.lowering import tree
from noetl.expr.lowering.expressions import ALL_GUARDED, UNGUARDED, Lowering
from noetl.expr.lowering.problems import Problem, ProblemKind, python_attribute, unknown
from noetl.expr.lowering.reads import constant_key, constant_path

_SUGGESTIONS: Final = 50
# Filters that take the name of another filter or test, and its position.
_NAMING: Final = {"map": 0, "select": 0, "reject": 0, "selectattr": 1, "rejectattr": 1}


class CallLowering(Lowering):
    """Lowering of expressions with calls."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds |= {nodes.Filter: self._filter, nodes.Test: self._test, nodes.Call: self._call}

    def _unknown(self, kind: ProblemKind, name: str, offset: int, known: Iterable[str]) -> Problem:
        """Report an unknown name; only the first problems get (slow) suggestions."""
        return unknown(kind, name, offset, known if len(self.problems) < _SUGGESTIONS else (), FILTERS)

    def _arguments(self, node: nodes.Call | nodes.Filter | nodes.Test) -> tree.Arguments:
        return tree.Arguments(
            self.each(node.args),
            tuple((str(pair.key), self.inner(pair.value)) for pair in node.kwargs),
            self.optional(node.dyn_args),
            self.optional(node.dyn_kwargs),
        )

    def _check_arguments(
        self, callee: Callee, node: nodes.Call | nodes.Filter | nodes.Test, offset: int
    ) -> Problem | None:
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            return None
        misuse = callee.misuse(len(node.args), tuple(str(pair.key) for pair in node.kwargs))
        if misuse is None or callee.kind == "method":
            return None
        return Problem(callee.kind, callee.name, offset, misuse)

    def _filter(self, node: nodes.Filter) -> tree.Expr:
        operand: nodes.Node = node.node if node.node is not None else nodes.Const("", lineno=node.lineno)
        forgiving = node.name in {"default", "d"}
        value = self.under(ALL_GUARDED, operand) if forgiving else self.inner(operand)
        return self.apply_filter(node, value)

    def apply_filter(self, node: nodes.Filter, value: tree.Expr) -> tree.Expr:
        """Apply the filter of `node` to a lowered value."""
        arguments = self._arguments(node)
        callee = FILTERS.get(node.name)
        parts = (value, *arguments.positional, *(argument for _, argument in arguments.keywords))
        if callee is None:
            return self.problem(self._unknown("filter", node.name, node.lineno, FILTERS), parts)
        wrong = self._check_arguments(callee, node, node.lineno) or self._check_named_callable(node)
        if wrong is not None:
            return self.problem(wrong, parts)
        return tree.Apply(callee, value, arguments, node.lineno)

    def _check_named_callable(self, node: nodes.Filter) -> Problem | None:
        position = _NAMING.get(node.name)
        if position is None or len(node.args) <= position:
            return None
        named = node.args[position]
        if not isinstance(named, nodes.Const) or not isinstance(named.value, str):
            return None
        if node.name == "map":
            return None if named.value in FILTERS else self._unknown("filter", named.value, named.lineno, FILTERS)
        return None if named.value in TESTS else self._unknown("test", named.value, named.lineno, TESTS)

    def _test(self, node: nodes.Test) -> tree.Expr:
        asking = node.name in {"defined", "undefined"}
        value = self.under(ALL_GUARDED, node.node) if asking else self.inner(node.node)
        arguments = self._arguments(node)
        callee = TESTS.get(node.name)
        parts = (value, *arguments.positional, *(argument for _, argument in arguments.keywords))
        if callee is None:
            return self.problem(self._unknown("test", node.name, node.lineno, TESTS), parts)
        wrong = self._check_arguments(callee, node, node.lineno)
        if wrong is not None:
            return self.problem(wrong, parts)
        return tree.Apply(callee, value, arguments, node.lineno)

    def _call(self, node: nodes.Call) -> tree.Expr:
        target = node.node
        if isinstance(target, nodes.Getattr):
            return self._method(node, target)
        if isinstance(target, nodes.Name) and not self.names.resolve(target.name)[0]:
            return self._function(node, target)
        parts = (self.inner(target), *self._arguments(node).positional)
        message = "only functions and methods can be called; this is a value"
        return self.problem(Problem("function", "(value)", node.lineno, message), parts)

    def _function(self, node: nodes.Call, target: nodes.Name) -> tree.Expr:
        arguments = self._arguments(node)
        callee = FUNCTIONS.get(target.name)
        if callee is None:
            wrong: Problem | None = self._unknown("function", target.name, target.lineno, FUNCTIONS)
        else:
            self.pure = self.pure and callee.pure
            wrong = self._check_arguments(callee, node, target.lineno)
        if wrong is not None or callee is None:
            return self.problem(wrong, arguments.positional) if wrong is not None else tree.Const(None)
        return tree.Call(callee, arguments, target.lineno)

    def _method(self, node: nodes.Call, target: nodes.Getattr) -> tree.Expr:
        read = self._get(node, target)
        if read is not None:
            return read
        value = self._receiver(target.node)
        arguments = self._arguments(node)
        wrong = None
        if target.attr.startswith("__"):
            wrong = python_attribute(target.attr, target.lineno)
        elif isinstance(value, tree.Local) and value.name == "loop" and target.attr == "cycle" and arguments.positional:
            count = tree.Const(len(arguments.positional))
            turn = tree.Arithmetic(tree.Items(value, ("index0",), ("loop",)), (("%", count),), target.lineno)
            return tree.Item(tree.Sequence(arguments.positional, True), turn, ("loop", "cycle"))
        elif target.attr not in METHODS:
            wrong = self._unknown("method", target.attr, target.lineno, METHODS)
        if wrong is not None:
            return self.problem(wrong, (value, *arguments.positional))
        return tree.Method(target.attr, value, arguments, target.lineno)

    def _receiver(self, base: nodes.Expr) -> tree.Expr:
        before, self.guard = self.guard, ALL_GUARDED if self.guard == ALL_GUARDED else UNGUARDED
        is_path = isinstance(base, nodes.Name | nodes.Getattr | nodes.Getitem)
        value = self.path(base, called=True) if is_path else self.expr(base)
        self.guard = before
        return value

    def _get(self, node: nodes.Call, target: nodes.Getattr) -> tree.Expr | None:
        """Lower `path.get('key')` on data to a read of that key only."""
        path = constant_path(target.node)
        plain = target.attr == "get" and 1 <= len(node.args) <= 2 and not node.kwargs and not node.dyn_args
        if not plain or path is None or self.names.resolve(str(path[0]))[0] or self.attribute_problem(target):
            return None
        key = constant_key(node.args[0])
        if not isinstance(key, str):
            return None
        lookup = nodes.Getitem(target.node, node.args[0], "load", lineno=node.args[0].lineno)
        value = self.under(ALL_GUARDED, lookup)
        fallback = self.expr(node.args[1]) if len(node.args) > 1 else tree.Const(None)
        return tree.Get(value, fallback) if isinstance(value, tree.Reading) else None
