"""NOE106 reports a second step with a name that is taken."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.nodes import Scalar
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: copy, path: examples/copy }
workflow:
  - step: fetch
    tool: { kind: noop }
    next: store
  - step: store
    tool: { kind: noop }
"""


def check(subject: Subject) -> Iterator[Found]:
    first: dict[str, Scalar | None] = {}
    for step in subject.playbook.workflow:
        if not step.name:
            continue
        if step.name not in first:
            first[step.name] = step.name_at
        elif step.name_at is not None:
            other = first[step.name]
            line = subject.source.position(other.start).line if other else 0
            message = f"A step named '{step.name}' stands on line {line} already."
            yield at(step.name_at, message, "Give one of the two another name, and let the arcs follow.")


RULE = Rule(
    code="NOE106",
    name="duplicate-step",
    group="shape",
    severity="error",
    summary="Two steps of the workflow have the same name.",
    why="Arcs, results and the event log refer to a step by its name; with two of them nobody can tell which is meant.",
    fix="Rename one of them, and every `next`, `done('…')` and template that means it.",
    bad=GOOD.replace("- step: store", "- step: fetch").replace("    next: store\n", ""),
    good=GOOD,
    check=check,
)
