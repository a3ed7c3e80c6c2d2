"""NOE210 reports an iterator whose name hides something else."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.playbook import Step
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.scopes import ITER_FIELDS, LOOP_NAMES, SCOPES
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: cities, path: examples/cities }
workload: { cities: [Oslo, Rome], api: "http://127.0.0.1:8080" }
workflow:
  - step: forecast
    loop:
      in: "{{ workload.cities }}"
      iterator: city
    tool: { kind: http, url: "{{ workload.api }}/{{ iter.city }}" }
"""


def check(subject: Subject) -> Iterator[Found]:
    for step in subject.playbook.workflow:
        hidden = _hidden(step, subject)
        if hidden and step.loop and step.loop.iterator_at is not None:
            message = f"The iterator '{step.loop.iterator}' of step '{step.name}' {hidden}."
            yield at(
                step.loop.iterator_at, message, "Give the item a name of its own, such as the singular of the list."
            )


def _hidden(step: Step, subject: Subject) -> str:
    if step.loop is None:
        return ""
    name = step.loop.iterator
    if name in SCOPES:
        return f"has the name of the scope `{name}`, which cannot be read inside the loop any more"
    if name in ITER_FIELDS or name in LOOP_NAMES:
        return f"takes the place of `iter.{name}`, which every loop has"
    if any(task.label == name for task in step.tasks):
        return f"has the name of the task '{name}' of the same step, so one hides the other"
    if name == step.name:
        return "has the name of its own step, whose result is read by that name after the loop"
    if name in subject.names.steps:
        return f"hides the result of step '{name}' in the tasks of this one"
    return ""


RULE = Rule(
    code="NOE210",
    name="shadowing-iterator",
    group="names",
    severity="warning",
    summary="An iterator has the name of a scope, a step or a task.",
    why="Templates read the item by this name, so what had the name before cannot be read inside the loop any more.",
    fix="Choose another name: the singular of the list is a good one (`cities` → `city`).",
    bad=GOOD.replace("iterator: city", "iterator: input").replace("{{ iter.city }}", "{{ iter.input }}"),
    good=GOOD,
    check=check,
)
