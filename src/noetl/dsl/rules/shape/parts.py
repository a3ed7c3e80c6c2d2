"""The parts of a playbook that several rules of this group go through: tasks, writes and lists of rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from noetl.dsl.nodes import ListNode, MapNode
from noetl.dsl.playbook import Assign, Step, Task
from noetl.dsl.subject import Subject

Place = Literal["task", "rule", "step", "arc"]


class Writes(NamedTuple):
    """The writes of one map: where it stands and what it writes, in order."""

    place: Place
    step: Step | None  # None in the workbook
    assigns: tuple[Assign, ...]


class Rules(NamedTuple):
    """A list of rules as it is written, and whether it is that of a gate."""

    items: tuple[MapNode, ...]
    is_gate: bool


def tasks(subject: Subject) -> Iterator[tuple[Step | None, Task]]:
    """Give every task with its step, those of the workbook first."""
    yield from ((None, task) for task in subject.playbook.workbook)
    yield from ((step, task) for step in subject.playbook.workflow for task in step.tasks)


def writes(subject: Subject) -> Iterator[Writes]:
    """Give every `set` of the playbook that writes something."""
    for step, task in tasks(subject):
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


def rule_lists(subject: Subject) -> Iterator[Rules]:
    """Give the rules of every task policy and every gate."""
    for _, task in tasks(subject):
        if isinstance(task.rules_at, ListNode):
            yield Rules(_maps(task.rules_at), is_gate=False)
    for step in subject.playbook.workflow:
        rules = step.admit_at.get("rules") if isinstance(step.admit_at, MapNode) else None
        if isinstance(rules, ListNode):
            yield Rules(_maps(rules), is_gate=True)


def _maps(node: ListNode) -> tuple[MapNode, ...]:
    return tuple(item for item in node if isinstance(item, MapNode))
