"""NOE208 reports a call of a workbook task that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import Node
from noetl.dsl.tree.playbook import Task

GOOD = example("""\
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
""")


_LISTED = 50


def check(subject: CheckContext) -> Iterator[Finding]:
    for step in subject.playbook.workflow:
        for task in step.tasks:
            if task.kind == "workbook":
                yield from _check_call(task, subject)


def _check_call(task: Task, subject: CheckContext) -> Iterator[Finding]:
    if id(task.at) in subject.wrong_maps:
        return  # a misspelled key may hold the name
    named = task.fields.get("task")
    name = str(named.data) if named else task.label
    node: Node | None = named.at if named else task.label_at
    if node is None:
        if task.at is not None:
            message = f"Task '{task.label}' calls the workbook without naming a task."
            yield at(task.at, message, "Add `task: <name>` with one of the tasks under `workbook`.")
        return
    if name in subject.workbook or name in subject.obscured:
        return
    if not subject.workbook:
        message = f"Task '{task.label}' calls '{name}' of the workbook, but this playbook has no workbook."
        yield at(node, message, "Add a `workbook:` with a task of this name at the root.")
        return
    message = f"Task '{task.label}' calls '{name}', which is not in the workbook."
    known = ", ".join(islice(subject.workbook, _LISTED)) + (", …" if len(subject.workbook) > _LISTED else "")
    yield at(
        node,
        message + subject.suggestions.did_you_mean(name, subject.workbook),
        f"Call one of: {known}; or add the task to the workbook.",
    )


RULE = Rule(
    code="NOE208",
    name="unknown-workbook-task",
    severity="error",
    summary="A task calls a task that the workbook does not have.",
    why="There is nothing to run, so the step fails when it reaches this task.",
    fix="Correct the name, or add a task with this name under `workbook`.",
    bad=GOOD.replace("task: tidy", "task: tidi"),
    good=GOOD,
    check=check,
)
