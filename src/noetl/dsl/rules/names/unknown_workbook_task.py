"""NOE208 reports a call of a workbook task that does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.nodes import Node
from noetl.dsl.playbook import Task
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: orders, path: examples/orders }
workload: { orders: [] }
workbook:
  - tidy:
      kind: python
      code: result = sorted(orders)
workflow:
  - step: clean
    tool:
      - first:
          kind: workbook
          task: tidy
          args: { orders: "{{ workload.orders }}" }
"""


def check(subject: Subject) -> Iterator[Found]:
    for step in subject.playbook.workflow:
        for task in step.tasks:
            if task.kind == "workbook":
                yield from _call(task, subject)


def _call(task: Task, subject: Subject) -> Iterator[Found]:
    if any(finding.owner is task.at for finding in subject.shape):
        return  # a misspelled key may hold the name
    named = task.fields.get("task")
    name = str(named.data) if named else task.label
    node: Node | None = named.at if named else task.label_at
    if node is None:
        if task.at is not None:
            message = f"The call of the workbook in task '{task.label}' does not say which task it calls."
            yield at(task.at, message, "Name it: `task: <name>`, one of the tasks under `workbook`.")
        return
    if name in subject.workbook or name in subject.obscured:
        return
    if not subject.workbook:
        message = f"Task '{task.label}' calls '{name}' of the workbook, and this playbook has no workbook."
        yield at(node, message, "Add `workbook:` at the root with a task of this name.")
        return
    message = f"Task '{task.label}' calls '{name}', which is not in the workbook."
    known = ", ".join(subject.workbook)
    yield at(node, message + did_you_mean(name, subject.workbook), f"Call one of: {known}; or add the task there.")


RULE = Rule(
    code="NOE208",
    name="unknown-workbook-task",
    group="names",
    severity="error",
    summary="A task calls something that the workbook does not have.",
    why="There is nothing to run, so the step fails as soon as it comes to this task.",
    fix="Correct the name, or add a task with this name under `workbook`.",
    bad=GOOD.replace("task: tidy", "task: tidi"),
    good=GOOD,
    check=check,
)
