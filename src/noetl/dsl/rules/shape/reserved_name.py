"""NOE112 reports a name of one's own that stored results use themselves: `_ref` and `_store`."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.rules.shape.parts import tasks, writes
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: export, path: examples/export }
workload:
  target_store: archive
workflow:
  - step: report
    tool: { kind: noop, message: "Kept in {{ workload.target_store }}." }
"""
_RESERVED = frozenset({"_ref", "_store"})


def check(subject: Subject) -> Iterator[Found]:
    for name, node in _chosen(subject):
        if name in _RESERVED and node is not None:
            message = f"'{name}' is the name under which a stored result carries its own {_MEANING[name]}."
            yield at(node, message, "Choose another name.")


_MEANING = {"_ref": "reference", "_store": "place"}


def _chosen(subject: Subject) -> Iterator[tuple[str, Node | None]]:
    """Give every name that the author of the playbook chose, with its place."""
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
    for _, task in tasks(subject):
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
    """Give the names that parts of a result get beside its reference."""
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
    group="shape",
    severity="error",
    summary="A name chosen in the playbook is `_ref` or `_store`.",
    why="A large result is kept in a store, and templates find its reference under `_ref` and its store under `_store`. "
    "A value of the same name would hide them, or be hidden.",
    fix="Choose another name, such as `report_ref`.",
    bad=GOOD.replace("target_store", "_store"),
    good=GOOD,
    check=check,
)
