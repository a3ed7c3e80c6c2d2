"""Lower statements. Tested in tests/unit/expr/compiler/test_statements.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jinja2 import nodes

from noetl.expr.lowering import tree
from noetl.expr.lowering.calls import CallLowering
from noetl.expr.lowering.expressions import Names
from noetl.expr.lowering.problems import Problem, refused_statement
from noetl.expr.lowering.reads import facts
from noetl.expr.runtime.undefined import Path

# Statement names of Jinja2's nodes that are not supported.
_STATEMENTS: Final[dict[type[nodes.Node], str]] = {
    nodes.Block: "block", nodes.CallBlock: "call", nodes.Extends: "extends", nodes.FilterBlock: "filter",
    nodes.FromImport: "from", nodes.Import: "import", nodes.Include: "include", nodes.Macro: "macro",
    nodes.Scope: "autoescape", nodes.With: "with",
}  # fmt: skip


class StatementLowering(CallLowering):
    """Lowering of a whole template."""

    def body(self, items: Sequence[nodes.Node]) -> tree.Body:
        lowered: list[tree.Statement] = []
        for node in items:
            if isinstance(node, nodes.Output):
                lowered.extend(self._output(part) for part in node.nodes)
            else:
                lowered.append(self._statement(node))
        return tuple(lowered)

    def _output(self, part: nodes.Node) -> tree.Statement:
        if isinstance(part, nodes.TemplateData):
            return tree.Text(part.data)
        return tree.Output(self.expr(part), part.lineno)

    def _statement(self, node: nodes.Node) -> tree.Statement:
        if isinstance(node, nodes.If):
            return self._if(node)
        if isinstance(node, nodes.For):
            return self._for(node)
        if isinstance(node, nodes.Assign):
            return self._set(node)
        if isinstance(node, nodes.AssignBlock):
            return self._set_block(node)
        name = _STATEMENTS.get(type(node), "")
        if isinstance(node, nodes.ExprStmt) and isinstance(node.node, nodes.Const):
            name = str(node.node.value)
        offset = node.body[0].lineno if isinstance(node, nodes.Scope) and node.body else node.lineno
        return self._refuse(refused_statement(name or type(node).__name__.lower(), offset))

    def _refuse(self, problem: Problem) -> tree.Refused:
        self.problems.append(problem)
        return tree.Refused(problem)

    def _if(self, node: nodes.If) -> tree.Statement:
        before = set(self.names.sure)
        ends: list[set[str]] = []
        cases: list[tuple[tree.Expr, tree.Body]] = []
        assumed: list[Path] = []
        for case in (node, *node.elif_):
            test = self.expr(case.test)
            found = facts(case.test, True)
            self.learn(found)
            cases.append((test, self.body(case.body)))
            self.forget(found)
            ends.append(self.names.sure)
            self.names.sure = set(before)
            found = facts(case.test, False)
            self.learn(found)
            assumed.extend(found)
        otherwise = self.body(node.else_)
        self.forget(assumed)
        # Defined after the `if` is what every branch defines.
        self.names.sure = self.names.sure.intersection(*ends)
        return tree.If(tuple(cases), otherwise)

    def _for(self, node: nodes.For) -> tree.Statement:
        values = self.expr(node.iter)
        if node.recursive:
            return self._refuse(refused_statement("for … recursive", node.lineno))
        outer, self.names = self.names, Names(self.names)
        target = self._target(node.target)
        targets = set(self.names.slots)
        test = self.expr(node.test) if node.test is not None else None
        loop = self._declare("loop")
        self.names.used.discard("loop")
        body = self.body(node.body)
        used = "loop" in self.names.used
        fresh = tuple(slot for name, slot in self.names.slots.items() if name not in targets and name != "loop")
        self.names = Names(outer)
        otherwise = self.body(node.else_)
        self.names = outer
        return tree.For(target, values, test, body, otherwise, loop if used else None, fresh, node.lineno)

    def _declare(self, name: str) -> int:
        names = self.names
        if name not in names.slots:
            names.slots[name] = self.slot_count
            self.slot_count += 1
        names.sure.add(name)
        names.namespaces.discard(name)
        return names.slots[name]

    def _target(self, node: nodes.Node) -> tree.Target:
        if isinstance(node, nodes.Tuple):
            return tuple(self._target(item) for item in node.items)
        return self._declare(node.name if isinstance(node, nodes.Name) else "")

    def _set(self, node: nodes.Assign) -> tree.Statement:
        value = self.expr(node.node)
        if isinstance(node.target, nodes.NSRef):
            slot = self.names.namespace(node.target.name)
            if slot is None:
                message = f"`{node.target.name}` is not a namespace, so its fields cannot be set"
                fix = f"start with `{{% set {node.target.name} = namespace() %}}`"
                return self._refuse(Problem("statement", "set", node.lineno, f"{message}; {fix}"))
            return tree.SetField(slot, node.target.attr, value, node.lineno)
        if isinstance(node.target, nodes.Tuple) and any(isinstance(item, nodes.NSRef) for item in node.target.items):
            message = "fields of a namespace must be set one at a time"
            return self._refuse(Problem("statement", "set", node.lineno, message))
        target = self._target(node.target)
        if isinstance(node.target, nodes.Name) and isinstance(value, tree.Call) and value.callee.name == "namespace":
            self.names.namespaces.add(node.target.name)
        return tree.Set(target, value, node.lineno)

    def _set_block(self, node: nodes.AssignBlock) -> tree.Statement:
        if not isinstance(node.target, nodes.Name):
            return self._refuse(Problem("statement", "set", node.lineno, "`{% set %}…{% endset %}` takes one name"))
        outer, self.names = self.names, Names(self.names)
        body = self.body(node.body)
        self.names = outer
        waiting = self.slot_count
        self.slot_count += 1
        filters = self._filters(node.filter, waiting) if node.filter is not None else None
        return tree.SetBlock(self._target(node.target), body, waiting, filters, node.lineno)

    def _filters(self, node: nodes.Filter, slot: int) -> tree.Expr:
        chain: list[nodes.Filter] = []
        inner: nodes.Node | None = node
        while isinstance(inner, nodes.Filter):
            chain.append(inner)
            inner = inner.node
        value: tree.Expr = tree.Local("", (slot,), None, False)
        for link in reversed(chain):
            value = self.apply_filter(link, value)
        return value
