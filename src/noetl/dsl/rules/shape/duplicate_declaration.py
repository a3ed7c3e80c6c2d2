"""NOE123 reports a duplicate credential, workbook task or arc label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode, Node

GOOD = example("""\
workbook:
  - name: greet
    kind: noop
    message: Good morning
  - name: part
    kind: noop
    message: Good night
workflow:
  - step: greet_all
    tool:
      - morning: { kind: workbook, task: greet }
      - night: { kind: workbook, task: part }
""")
BAD = GOOD.replace("- name: part", "- name: greet").replace("task: part", "task: greet")


def check(subject: CheckContext) -> Iterator[Finding]:
    playbook = subject.playbook
    named = ((task.label, task.label_at) for task in playbook.workbook if task.label_at)
    yield from _twice(subject, "The workbook has a task", named)
    credentials = ((entry.name, _name_of(entry.at)) for entry in playbook.keychain)
    yield from _twice(subject, "The keychain has a credential", credentials)
    for step in playbook.workflow:
        labels = ((arc.label, _label_of(arc.at)) for arc in step.arcs if arc.label)
        yield from _twice(subject, f"Step '{step.name}' has an arc", labels)


def _twice(subject: CheckContext, what: str, named: Iterable[tuple[str, Node | None]]) -> Iterator[Finding]:
    first: dict[str, Node | None] = {}
    for name, node in named:
        if name not in first:
            first[name] = node
        elif node is not None:
            other = first[name]
            line = f" on line {subject.source.position(other.start).line}" if other else ""
            yield at(node, f"{what} named '{name}' already{line}.", "Rename or remove one of the two.")


def _name_of(node: Node | None) -> Node | None:
    return node.get("name") or node if isinstance(node, MapNode) else node


def _label_of(node: Node | None) -> Node | None:
    return node.get("label") if isinstance(node, MapNode) else None


RULE = Rule(
    code="NOE123",
    name="duplicate-declaration",
    severity="error",
    summary="Two credentials, two workbook tasks, or two arcs of a step have the same name.",
    why="`auth`, `kind: workbook` and `route_edge:<label>` refer to them by name and would only find the first one.",
    fix="Rename or remove one of the two.",
    bad=BAD,
    good=GOOD,
    check=check,
)
