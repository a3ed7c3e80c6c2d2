"""NOE211 reports a step or a task that has the name of a scope."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.nodes import Scalar
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.scopes import SCOPES
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: state, path: examples/state }
workflow:
  - step: load_state
    tool: { kind: noop, result: { ready: true } }
    next: show
  - step: show
    tool: { kind: noop, message: "{{ load_state.ready }}" }
"""


def check(subject: Subject) -> Iterator[Found]:
    for step in subject.playbook.workflow:
        if step.name in SCOPES:
            yield from _found("step", step.name, step.name_at)
        for task in step.tasks:
            if task.label in SCOPES:
                yield from _found("task", task.label, task.label_at)


def _found(what: str, name: str, node: Scalar | None) -> Iterator[Found]:
    if node is not None:
        message = f"The {what} '{name}' has the name of a scope: `{{{{ {name} }}}}` never reads its result."
        yield at(node, message, f"Choose another name, such as `{name.strip('_')}_{what}`.")


RULE = Rule(
    code="NOE211",
    name="scope-as-name",
    group="names",
    severity="warning",
    summary="A step or a task has the name of a scope.",
    why=(
        "Scopes such as `ctx`, `input` or `outcome` win over the names of steps and tasks, so the result of this one can "
        "never be read in a template."
    ),
    fix="Choose another name.",
    bad=GOOD.replace("load_state", "ctx"),
    good=GOOD,
    check=check,
)
