"""NOE107 reports a duplicate task label in a pipeline."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.tree.playbook import Task

GOOD = example("""\
workflow:
  - step: copy
    tool:
      - fetch: { kind: http, url: https://example.org/data }
      - store: { kind: http, method: PUT, url: https://example.org/copy, json: "{{ _prev }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for step in subject.playbook.workflow:
        first: dict[str, Task] = {}
        for task in step.tasks:
            other = first.setdefault(task.label, task)
            place = task.label_at or other.label_at
            if other is not task and place is not None:
                message = f"Two tasks of step '{step.name}' have the label '{task.label}'."
                yield at(place, message, "Rename one of the two labels.")


RULE = Rule(
    code="NOE107",
    name="duplicate-label",
    severity="error",
    summary="Two tasks of one pipeline have the same label.",
    why="Jumps, templates and events refer to a task by its label; the second task would hide the first.",
    fix="Rename one of them. Labels must be unique only within their step.",
    bad=GOOD.replace("- store:", "- fetch:"),
    good=GOOD,
    check=check,
)
