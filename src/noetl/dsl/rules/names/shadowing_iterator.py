"""NOE210 reports an iterator that hides another name."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.scopes import ITER_FIELDS, LOOP_NAMES, SCOPES
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.tree.playbook import Step

GOOD = example("""\
workload: { cities: [Oslo, Rome], api: "http://127.0.0.1:8080" }
workflow:
  - step: forecast
    loop:
      in: "{{ workload.cities }}"
      iterator: city
    tool: { kind: http, url: "{{ workload.api }}/{{ iter.city }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for step in subject.playbook.workflow:
        hidden = _hidden(step, subject)
        if hidden and step.loop and step.loop.iterator_at is not None:
            message = f"The iterator '{step.loop.iterator}' of step '{step.name}' {hidden}."
            yield at(step.loop.iterator_at, message, "Rename the iterator, for example to the singular of the list.")


def _hidden(step: Step, subject: CheckContext) -> str:
    if step.loop is None:
        return ""
    name = step.loop.iterator
    if name in SCOPES:
        return f"hides the scope `{name}` inside the loop"
    if name in ITER_FIELDS or name in LOOP_NAMES:
        return f"replaces `iter.{name}`, which every loop has"
    if any(task.label == name for task in step.tasks):
        return f"has the name of task '{name}' of the same step, so one hides the other"
    if name == step.name:
        return "has the name of its own step, which later templates read as the result of the loop"
    if name in subject.names.steps:
        return f"hides the result of step '{name}' inside the loop"
    return ""


RULE = Rule(
    code="NOE210",
    name="shadowing-iterator",
    severity="warning",
    summary="An iterator has the name of a scope, a step or a task.",
    why="Inside the loop this name means the item, so templates cannot read what the name meant before.",
    fix="Choose another name, for example the singular of the list (`cities` → `city`).",
    bad=GOOD.replace("iterator: city", "iterator: input").replace("{{ iter.city }}", "{{ iter.input }}"),
    good=GOOD,
    check=check,
)
