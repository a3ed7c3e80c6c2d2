"""What a playbook says of a task: kind, sink, write mode, table, signature.

Metrics, logs and traces show the same. Tested in tests/unit/server/metrics/test_task_metrics.py and tests/observe/test_logs.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from noetl.dsl.tree.playbook import Task
from noetl.engine.plan.patches import called
from noetl.engine.plan.plan import Plan
from noetl.engine.tasks.sinks import sink_id
from noetl.observe.signatures import call_signature


class TaskFacts(NamedTuple):
    """What is known of a task before it runs."""

    kind: str
    sink: str | None = None
    mode: str = ""
    table: str = ""
    signature: str = ""


def task_facts(task: Task) -> TaskFacts:
    """Return what a task says of itself; templates are not shown as a mode or a table."""
    fields = {name: value.data for name, value in task.fields.items()}
    texts = {name: fields[name] for name in ("mode", "table") if isinstance(fields.get(name), str)}
    mode, table = ("" if "{" in (text := texts.get(name, "")) else text for name in ("mode", "table"))
    return TaskFacts(task.kind, sink_id(task), mode, table, call_signature(task.kind, fields))


def find_task(tasks: Sequence[Task], workbook: Sequence[Task], label: str) -> Task | None:
    """Return a task by its label; the label of a workbook task follows a slash."""
    inner = label.rpartition("/")[2]
    return next((task for task in (workbook if inner != label else tasks) if task.label == inner), None)


def sink_of(tasks: Sequence[Task], workbook: Sequence[Task], label: str) -> str | None:
    """Return the sink of a task as the playbook names it."""
    task = find_task(tasks, workbook, label)
    return None if task is None else sink_id(task)


def task_in(plan: Plan, step: str, label: str) -> Task | None:
    """Return a task of a step by its label."""
    tasks = plan.step(step).tasks if step in plan.net.index else ()
    return find_task(tasks, plan.playbook.workbook, label)


def run_by(plan: Plan, task: Task) -> Task:
    """Return the workbook task that a task calls, or the task itself."""
    if task.kind != "workbook":
        return task
    return next((one for one in plan.playbook.workbook if one.label == called(task)), task)
