"""Iterate over writes and rule lists; shared by the rules of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.reading.nodes import ListNode, MapNode
from noetl.dsl.tree.playbook import Assign, Step, Task

Place = Literal["task", "rule", "step", "arc"]


class Writes(NamedTuple):
    """The writes of one map in order, and the part that holds it."""

    place: Place
    step: Step | None  # None in the workbook
    assigns: tuple[Assign, ...]


class Rules(NamedTuple):
    """A list of rules as written, and whether it belongs to a gate."""

    items: tuple[MapNode, ...]
    is_gate: bool


def _tasks(subject: CheckContext) -> Iterator[tuple[Step | None, Task]]:
    """Yield every task with its step, those of the workbook first."""
    yield from ((None, task) for task in subject.playbook.workbook)
    yield from ((step, task) for step in subject.playbook.workflow for task in step.tasks)


def writes(subject: CheckContext) -> Iterator[Writes]:
    """Yield every `set` of the playbook that writes something."""
    for step, task in _tasks(subject):
        if task.sets:
            yield Writes("task", step, task.sets)
        for rule in task.rules or ():
            if rule.then.sets:
                yield Writes("rule", step, rule.then.sets)
    for step in subject.playbook.workflow:
        if step.sets:
            yield Writes("step", step, step.sets)
        for arc in step.arcs:
            if arc.sets:
                yield Writes("arc", step, arc.sets)


def rule_lists(subject: CheckContext) -> Iterator[Rules]:
    """Yield the rules of every task policy and every gate."""
    for task in subject.playbook.all_tasks:
        if isinstance(task.rules_at, ListNode):
            yield Rules(_maps(task.rules_at), is_gate=False)
    for step in subject.playbook.workflow:
        rules = step.admit_at.get("rules") if isinstance(step.admit_at, MapNode) else None
        if isinstance(rules, ListNode):
            yield Rules(_maps(rules), is_gate=True)


def _maps(node: ListNode) -> tuple[MapNode, ...]:
    return tuple(item for item in node if isinstance(item, MapNode))
