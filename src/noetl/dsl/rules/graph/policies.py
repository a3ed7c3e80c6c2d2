"""Gives the task policies that can be judged: those that were read as they were written and have the right shape.

Tested in tests/unit/dsl/rules/test_graph_policies.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.playbook import Task, TaskRule
from noetl.dsl.subject import Subject

_LEVELS = frozenset({"task_policy", "task_rule", "task_then", "task_else"})


def policies(subject: Subject) -> Iterator[tuple[Task, tuple[TaskRule, ...]]]:
    """Give every task that has rules, with its rules; what is wrong with the others is told elsewhere."""
    broken = [finding.node.start for finding in subject.shape if finding.level.name in _LEVELS]
    broken += [problem.start for problem in subject.document.problems if problem.kind != "legacy-boolean"]
    playbook = subject.playbook
    for task in (*playbook.workbook, *(task for step in playbook.workflow for task in step.tasks)):
        if not task.rules or task.at is None or any(task.at.start <= start < task.at.end for start in broken):
            continue
        yield task, task.rules
