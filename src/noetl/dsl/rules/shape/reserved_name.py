"""NOE112 reports a name that is reserved for stored results: `_ref` or `_store`."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.rules.shape.traversal import writes

GOOD = example("""\
workload:
  target_store: archive
workflow:
  - step: report
    tool: { kind: noop, message: "Kept in {{ workload.target_store }}." }
""")
_RESERVED = frozenset({"_ref", "_store"})


def check(subject: CheckContext) -> Iterator[Finding]:
    for name, node in _author_names(subject):
        if name in _RESERVED and node is not None:
            message = f"'{name}' is reserved: a stored result keeps its {_MEANING[name]} under this name."
            yield at(node, message, "Choose another name.")


_MEANING = {"_ref": "reference", "_store": "store"}


def _author_names(subject: CheckContext) -> Iterator[tuple[str, Node | None]]:
    """Yield every name that the author of the playbook chose, with its node."""
    playbook = subject.playbook
    yield from _keys(subject.root.get("workload") if subject.root else None)
    for step in playbook.workflow:
        yield step.name, step.name_at
        if isinstance(step.at, MapNode):
            yield from _keys(step.at.get("input") or step.at.get("args"))
        if step.loop:
            yield step.loop.iterator, step.loop.iterator_at
        for arc in step.arcs:
            if isinstance(arc.at, MapNode):
                yield from _keys(arc.at.get("args") or arc.at.get("input"))
    for task in subject.playbook.all_tasks:
        yield task.label, task.label_at
        result = task.spec.get("result")
        yield from _selected(result.at if result else None)
    for _, _, assigns in writes(subject):
        for assign in assigns:
            yield assign.key.rsplit(".", 1)[-1], assign.at


def _keys(node: Node | None) -> Iterator[tuple[str, Node]]:
    if isinstance(node, MapNode):
        yield from ((entry.key.text, entry.key) for entry in node)


def _selected(node: Node | None) -> Iterator[tuple[str, Node]]:
    """Yield the names of the parts that stay inline with a reference."""
    if not isinstance(node, MapNode):
        return
    select = node.get("select") or node.get("output_select")
    for item in select if isinstance(select, ListNode) else ():
        named = item.get("as") if isinstance(item, MapNode) else None
        if isinstance(named, Scalar):
            yield named.text, named


RULE = Rule(
    code="NOE112",
    name="reserved-name",
    severity="error",
    summary="A playbook uses `_ref` or `_store` as a name.",
    why="A large result is stored, and templates read its reference as `_ref` and its store as `_store`. "
    "A value of the same name would hide them, or be hidden.",
    fix="Choose another name, such as `report_ref`.",
    bad=GOOD.replace("target_store", "_store"),
    good=GOOD,
    check=check,
)
