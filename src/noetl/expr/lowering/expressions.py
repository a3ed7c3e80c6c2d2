"""Lower Jinja2's names, lookups and operators to our tree; record their reads.

Names become paths into the scope or local variables, constant lookups one node, chains flat lists. Evaluates nothing but
constant arithmetic. Tested in tests/unit/expr/lowering/test_reads.py, test_problems.py and test_differential.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from jinja2 import nodes
from msgspec import Struct

from noetl.expr.errors import TemplateError, TemplateSyntaxError
from noetl.expr.lowering import tree
from noetl.expr.lowering.problems import Problem, python_attribute
from noetl.expr.lowering.reads import LOOKUPS, Read, constant_key, facts, operands
from noetl.expr.runtime.budget import Budget, Context
from noetl.expr.runtime.operators import ARITHMETIC
from noetl.expr.runtime.undefined import Path

DEPTH: Final = 150
PATH_LENGTH: Final = 100
_KEYS: Final = (str, int)
# Reach of a fallback: `or` covers the value on its left, `default` everything below it.
UNGUARDED, VALUE_GUARDED, ALL_GUARDED = 0, 1, 2
_BINARY: Final[dict[type[nodes.Node], str]] = {
    nodes.Add: "+", nodes.Sub: "-", nodes.Mul: "*", nodes.Div: "/", nodes.FloorDiv: "//", nodes.Mod: "%", nodes.Pow: "**",
}  # fmt: skip
_COMPARISONS: Final = {
    "eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">=", "in": "in", "notin": "not in",
}  # fmt: skip


class Names(Struct):
    """Template variables of one scope, defined by `set` and `for`.

    As in Jinja2, a `for` body is a scope entered afresh by each iteration, and an `if` is none. A name that is set in one
    branch only may still mean the data: it is tried as a variable first, then read from the scope.
    """

    parent: Names | None = None
    slots: dict[str, int] = {}
    sure: set[str] = set()
    namespaces: set[str] = set()
    used: set[str] = set()

    def chain(self) -> Iterator[Names]:
        """Iterate over this scope and the scopes around it."""
        names: Names | None = self
        while names is not None:
            yield names
            names = names.parent

    def resolve(self, name: str) -> tuple[tuple[int, ...], bool]:
        """Return slots that may hold `name`, innermost first; whether one surely does."""
        slots: list[int] = []
        for names in self.chain():
            slot = names.slots.get(name)
            if slot is None:
                continue
            names.used.add(name)
            slots.append(slot)
            if name in names.sure:
                return tuple(slots), True
        return tuple(slots), False

    def namespace(self, name: str) -> int | None:
        """Return the slot of the namespace `name`, or None if it is not one."""
        for names in self.chain():
            if name in names.slots:
                return names.slots[name] if name in names.namespaces else None
        return None


class Lowering:
    """Lowering of names, lookups and operators."""

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.problems: list[Problem] = []
        self.names = Names()
        self.slot_count = 0
        self.size = 0  # expressions
        self.pure = True
        self._depth = 0
        self.guard = UNGUARDED
        self._facts: dict[Path, int] = {}
        self.kinds: dict[type[nodes.Node], Callable[[Any], tree.Expr]] = {
            nodes.Const: lambda node: tree.Const(node.value),
            nodes.TemplateData: lambda node: tree.Const(node.data),
            nodes.Name: self.path,
            nodes.Getattr: self.path,
            nodes.Getitem: self.path,
            nodes.List: lambda node: tree.Sequence(self.each(node.items), False),
            nodes.Tuple: lambda node: tree.Sequence(self.each(node.items), True),
            nodes.Slice: self._slice,
            nodes.Dict: self._map,
            nodes.Neg: self._unary,
            nodes.Pos: self._unary,
            nodes.Concat: lambda node: tree.Concat(self.each(node.nodes), node.lineno),
            nodes.Compare: self._compare,
            nodes.And: self._all,
            nodes.Or: self._any,
            nodes.Not: lambda node: tree.Not(self.inner(node.node)),
            nodes.CondExpr: self._choice,
            **dict.fromkeys(_BINARY, self._arithmetic),
        }

    def expr(self, node: nodes.Node) -> tree.Expr:
        self._depth += 1
        self.size += 1
        if self._depth > DEPTH:
            raise TemplateSyntaxError("the expression is nested too deeply", node.lineno, "split it into parts")
        lowered = self.kinds[type(node)](node)
        self._depth -= 1
        return lowered

    def problem(self, problem: Problem, parts: Iterable[tree.Expr] = ()) -> tree.Fails:
        """Record a problem; the construct then fails when it is evaluated."""
        self.problems.append(problem)
        return tree.Fails(problem, tuple(parts))

    def learn(self, found: Iterable[Path]) -> None:
        """Assume that these paths are defined, until `forget`."""
        for path in found:
            self._facts[path] = self._facts.get(path, 0) + 1

    def forget(self, found: Iterable[Path]) -> None:
        """Drop assumptions of `learn`."""
        for path in found:
            self._facts[path] -= 1
            if not self._facts[path]:
                del self._facts[path]

    def under(self, guard: int, node: nodes.Node) -> tree.Expr:
        before = self.guard
        self.guard = guard if before != ALL_GUARDED else before
        lowered = self.expr(node)
        self.guard = before
        return lowered

    def inner(self, node: nodes.Node) -> tree.Expr:
        """Lower an operand: a fallback around the operation does not replace it."""
        return self.under(UNGUARDED, node) if self.guard == VALUE_GUARDED else self.expr(node)

    def optional(self, node: nodes.Node | None) -> tree.Expr | None:
        return None if node is None else self.inner(node)

    def each(self, items: Iterable[nodes.Node]) -> tuple[tree.Expr, ...]:
        return tuple(self.inner(item) for item in items)

    def _note(self, path: Path, offsets: tuple[int, ...], *, dynamic: bool = False, called: bool = False) -> None:
        guarded = self.guard != UNGUARDED or (
            bool(self._facts) and any(path[:end] in self._facts for end in range(1, len(path) + 1))
        )
        self.reads.append(Read(path, offsets[0], offsets, dynamic, guarded, called))

    def path(self, node: nodes.Expr, called: bool = False) -> tree.Expr:
        steps: list[tuple[nodes.Node | str | int, int]] = []
        base: nodes.Node = node
        while isinstance(base, LOOKUPS):
            if isinstance(base, nodes.Getattr):
                key: nodes.Node | str | int = base.attr
            else:
                constant = constant_key(base.arg)
                key = base.arg if constant is None else constant
            steps.append((key, base.lineno))
            if len(steps) > PATH_LENGTH:
                raise TemplateSyntaxError(f"a path may have {PATH_LENGTH} elements at most", node.lineno)
            base = base.node
        steps.reverse()
        wrong = self.attribute_problem(node)
        if wrong is not None:
            return self.problem(wrong, [self.expr(base)])
        constant_steps = 0
        while constant_steps < len(steps) and isinstance(steps[constant_steps][0], _KEYS):
            constant_steps += 1
        keys = tuple(key for key, _ in steps[:constant_steps] if isinstance(key, _KEYS))
        value = self._start(base, keys, [offset for _, offset in steps], constant_steps < len(steps), called)
        return self._rest(value, steps[constant_steps:], self._name_of(base, keys))

    @staticmethod
    def attribute_problem(node: nodes.Node) -> Problem | None:
        while isinstance(node, LOOKUPS):
            if isinstance(node, nodes.Getattr) and node.attr.startswith("__") and node.attr.endswith("__"):
                return python_attribute(node.attr, node.lineno)
            node = node.node
        return None

    @staticmethod
    def _name_of(base: nodes.Node, keys: Path) -> Path:
        return (base.name if isinstance(base, nodes.Name) else "(value)", *keys)

    def _start(self, base: nodes.Node, keys: Path, places: list[int], dynamic: bool, called: bool) -> tree.Expr:
        if not isinstance(base, nodes.Name):
            value = self.expr(base)
            return tree.Items(value, keys, ("(value)",)) if keys else value
        slots, certain = self.names.resolve(base.name)
        if not slots:
            path = (base.name, *keys)
            self._note(path, (base.lineno, *places[: len(keys)]), dynamic=dynamic, called=called)
            return tree.Reading(path, base.lineno)
        fallback = None
        if not certain:
            self._note((base.name,), (base.lineno,), dynamic=dynamic or bool(keys), called=called)
            fallback = tree.Reading((base.name,), base.lineno)
        copied = not keys and self.names.namespace(base.name) is not None
        local = tree.Local(base.name, slots, fallback, copied)
        return tree.Items(local, keys, (base.name,)) if keys else local

    def _rest(self, value: tree.Expr, steps: list[tuple[nodes.Node | str | int, int]], path: Path) -> tree.Expr:
        for key, offset in steps:
            if isinstance(key, nodes.Slice):
                start, stop, step = (self.optional(bound) for bound in (key.start, key.stop, key.step))
                value = tree.Range(value, (start, stop, step), offset)
            elif isinstance(key, nodes.Node):
                value = tree.Item(value, self.inner(key), path)
            else:
                value = tree.Items(value, (key,), path)
            path = (*path, key if isinstance(key, _KEYS) else "[…]")
        return value

    def _slice(self, node: nodes.Slice) -> tree.Expr:
        """Refuse a slice among several keys, as in `a[1:2, 3]`."""
        parts = [part for part in (node.start, node.stop, node.step) if part is not None]
        message = "a slice such as `1:2` must be the only key in `[…]`"
        return self.problem(Problem("attribute", ":", node.lineno, message), self.each(parts))

    def _map(self, node: nodes.Dict) -> tree.Expr:
        pairs = tuple((self.inner(pair.key), self.inner(pair.value)) for pair in node.items)
        return tree.Pairs(pairs, node.lineno)

    def _unary(self, node: nodes.UnaryExpr) -> tree.Expr:
        value = self.inner(node.node)
        if isinstance(value, tree.Const) and type(value.value) in {int, float}:
            return tree.Const(-value.value if isinstance(node, nodes.Neg) else value.value)
        return tree.Unary("-" if isinstance(node, nodes.Neg) else "+", value, node.lineno)

    def _arithmetic(self, node: nodes.BinExpr) -> tree.Expr:
        rest: list[tuple[str, nodes.Node]] = []
        left: nodes.Node = node
        while isinstance(left, nodes.BinExpr) and type(left) in _BINARY:
            rest.append((_BINARY[type(left)], left.right))
            left = left.left
        value = self.inner(left)
        lowered = tuple((sign, self.inner(right)) for sign, right in reversed(rest))
        return _fold_constants(tree.Arithmetic(value, lowered, node.lineno))

    def _compare(self, node: nodes.Compare) -> tree.Expr:
        first = self.inner(node.expr)
        rest = tuple((_COMPARISONS[operand.op], self.inner(operand.expr)) for operand in node.ops)
        return tree.Compare(first, rest, node.lineno)

    def _all(self, node: nodes.And) -> tree.Expr:
        parts: list[tree.Expr] = []
        assumed: list[Path] = []
        for part in operands(node):
            parts.append(self.expr(part))
            found = facts(part, True)
            self.learn(found)
            assumed.extend(found)
        self.forget(assumed)
        return tree.All(tuple(parts))

    def _any(self, node: nodes.Or) -> tree.Expr:
        *items, last = operands(node)
        parts: list[tree.Expr] = []
        assumed: list[Path] = []
        for part in items:
            parts.append(self.under(VALUE_GUARDED, part))
            found = facts(part, False)
            self.learn(found)
            assumed.extend(found)
        parts.append(self.expr(last))
        self.forget(assumed)
        return tree.AnyOf(tuple(parts))

    def _choice(self, node: nodes.CondExpr) -> tree.Expr:
        cases: list[tuple[tree.Expr, tree.Expr]] = []
        assumed: list[Path] = []
        otherwise: nodes.Node | None = node
        while isinstance(otherwise, nodes.CondExpr):
            test = self.inner(otherwise.test)
            found = facts(otherwise.test, True)
            self.learn(found)
            cases.append((test, self.expr(otherwise.expr1)))
            self.forget(found)
            found = facts(otherwise.test, False)
            self.learn(found)
            assumed.extend(found)
            otherwise = otherwise.expr2
        lowered = None if otherwise is None else self.expr(otherwise)
        self.forget(assumed)
        return tree.Choice(tuple(cases), lowered)


def _fold_constants(node: tree.Arithmetic) -> tree.Expr:
    """Evaluate constant arithmetic; what fails or grows is left to the evaluation."""
    value = node.first
    context = Context({}, Budget(100, 1_000))
    rest = list(node.rest)
    while rest and isinstance(value, tree.Const) and isinstance(rest[0][1], tree.Const):
        sign, right = rest[0][0], rest[0][1].value
        try:
            value = tree.Const(ARITHMETIC[sign](context, value.value, right))
        except TemplateError:
            break
        del rest[0]
    return tree.Arithmetic(value, tuple(rest), node.offset) if rest else value
