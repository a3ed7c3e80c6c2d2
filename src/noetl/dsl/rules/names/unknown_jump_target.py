"""NOE202 reports a jump to a task outside the pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Set

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode
from noetl.dsl.tree.playbook import Task

GOOD = example("""\
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: collect
    tool:
      - fetch_page:
          kind: http
          url: "{{ workload.api }}/orders"
          params: { page: "{{ step.page | default(1) }}" }
      - paginate:
          kind: noop
          spec:
            policy:
              rules:
                - when: "{{ fetch_page.data.more }}"
                  then: { do: jump, to: fetch_page, set: { step.page: "{{ fetch_page.data.next }}" } }
                - else:
                    then: { do: break }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for task in subject.playbook.workbook:
        yield from _jumps(subject, task, {task.label}, frozenset(), "in the workbook, where each task is separate")
    for step in subject.playbook.workflow:
        labels = {task.label for task in step.tasks}
        for task in step.tasks:
            yield from _jumps(subject, task, labels, subject.obscured, f"in the pipeline of step '{step.name}'")


def _jumps(subject: CheckContext, task: Task, labels: Set[str], hidden: Set[str], where: str) -> Iterator[Finding]:
    for rule in task.rules or ():
        target = rule.then.to
        if rule.then.do != "jump" or target is None or target == "previous":
            continue
        if target not in labels and target not in hidden:
            message = f"Task '{task.label}' jumps to '{target}', but there is no such task {where}."
            fix = "Name a task of the same pipeline, or `previous`. Use an arc to go to another step."
            node = rule.then.at.get("to") if isinstance(rule.then.at, MapNode) else None
            if node is not None:
                yield at(node, message + subject.suggestions.did_you_mean(target, labels), fix)


RULE = Rule(
    code="NOE202",
    name="unknown-jump-target",
    severity="error",
    summary="A jump names a task that is not in the same pipeline.",
    why="A jump moves within one pipeline, on the worker that runs it. An unknown label fails the step-run.",
    fix="Use the label of a task of this step. To go to another step, end the pipeline and add an arc.",
    bad=GOOD.replace("to: fetch_page,", "to: fetch_pages,"),
    good=GOOD,
    check=check,
)
