"""Gives the task policies that can be judged: those that were read as they were written and have the right shape.

Tested in tests/unit/dsl/rules/test_graph_policies.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.nodes import Node
from noetl.dsl.playbook import Task, TaskRule
from noetl.dsl.subject import Subject

_LEVELS = frozenset({"task_policy", "task_rule", "task_then", "task_else"})


def policies(subject: Subject) -> Iterator[tuple[Task, tuple[TaskRule, ...]]]:
    """Give every task that has rules, with its rules; what is wrong with the others is told elsewhere."""
    broken = misread(subject)
    playbook = subject.playbook
    for task in (*playbook.workbook, *(task for step in playbook.workflow for task in step.tasks)):
        if task.rules and task.at is not None and not holds_any(task.at, broken):
            yield task, task.rules


def misread(subject: Subject) -> list[int]:
    """Give the offsets where a policy has the wrong shape or place, or the text was not read as it was written."""
    found = [one.node.start for one in subject.shape if one.level.name in _LEVELS or one.name in ("policy", "rules")]
    return found + [problem.start for problem in subject.document.problems if problem.kind != "legacy-boolean"]


def holds_any(node: Node, offsets: list[int]) -> bool:
    return any(node.start <= offset < node.end for offset in offsets)
