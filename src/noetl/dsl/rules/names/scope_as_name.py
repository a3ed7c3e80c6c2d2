"""NOE211 reports a step or a task with the name of a scope."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.scopes import SCOPES
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import Scalar

GOOD = example("""\
workflow:
  - step: load_state
    tool: { kind: noop, result: { ready: true } }
    next: show
  - step: show
    tool: { kind: noop, message: "{{ load_state.ready }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for step in subject.playbook.workflow:
        if step.name in SCOPES:
            yield from _report("step", step.name, step.name_at)
        for task in step.tasks:
            if task.label in SCOPES:
                yield from _report("task", task.label, task.label_at)


def _report(what: str, name: str, node: Scalar | None) -> Iterator[Finding]:
    if node is not None:
        message = f"The {what} '{name}' has the name of a scope, so `{{{{ {name} }}}}` never reads its result."
        yield at(node, message, f"Choose another name, such as `{name.strip('_')}_{what}`.")


RULE = Rule(
    code="NOE211",
    name="scope-as-name",
    severity="warning",
    summary="A step or a task has the name of a scope.",
    why=(
        "Scopes such as `ctx`, `input` or `outcome` take precedence over steps and tasks, so no template can read the "
        "result of this one."
    ),
    fix="Choose another name.",
    bad=GOOD.replace("load_state", "ctx"),
    good=GOOD,
    check=check,
)
