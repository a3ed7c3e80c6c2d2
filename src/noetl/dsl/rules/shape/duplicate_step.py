"""NOE106 reports a duplicate step name."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import Scalar

GOOD = example("""\
workflow:
  - step: fetch
    tool: { kind: noop }
    next: store
  - step: store
    tool: { kind: noop }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    first: dict[str, Scalar | None] = {}
    for step in subject.playbook.workflow:
        if not step.name:
            continue
        if step.name not in first:
            first[step.name] = step.name_at
        elif step.name_at is not None:
            other = first[step.name]
            line = subject.source.position(other.start).line if other else 0
            message = f"Another step named '{step.name}' is on line {line}."
            yield at(step.name_at, message, "Rename one of the two, and update the arcs that lead to it.")


RULE = Rule(
    code="NOE106",
    name="duplicate-step",
    severity="error",
    summary="Two steps of the workflow have the same name.",
    why="Arcs, results and the event log refer to a step by its name, which would be ambiguous.",
    fix="Rename one of them, and every `next`, `done('…')` and template that refers to it.",
    bad=GOOD.replace("- step: store", "- step: fetch").replace("    next: store\n", ""),
    good=GOOD,
    check=check,
)
