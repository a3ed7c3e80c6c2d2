"""Select the task policies without read problems and shape findings.

Tested in tests/unit/dsl/rules/test_graph_policies.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.reading.ranges import Offsets
from noetl.dsl.tree.playbook import Task, TaskRule

_LEVELS = frozenset({"task_policy", "task_rule", "task_then", "task_else"})


def policies(subject: CheckContext) -> Iterator[tuple[Task, tuple[TaskRule, ...]]]:
    """Yield every task with an analysable policy, and its rules."""
    broken = misread(subject)
    for task in subject.playbook.all_tasks:
        if task.rules and task.at is not None and not broken.any_in(task.at.start, task.at.end):
            yield task, task.rules


def misread(subject: CheckContext) -> Offsets:
    """Return the offsets of shape findings in policies and of read problems."""
    found = [
        finding.node.start
        for finding in subject.shape
        if finding.level.name in _LEVELS or finding.name in ("policy", "rules")
    ]
    return Offsets(found + [problem.start for problem in subject.document.problems if problem.kind != "legacy-boolean"])
