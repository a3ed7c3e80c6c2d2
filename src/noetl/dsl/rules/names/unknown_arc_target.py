"""NOE201 reports an arc to a step that does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example

GOOD = example("""\
workflow:
  - step: fetch
    tool: { kind: noop }
    next: store
  - step: store
    tool: { kind: noop }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    names = subject.names.steps
    for step in subject.playbook.workflow:
        for arc in step.arcs:
            if arc.step in names or arc.step in subject.obscured or arc.step_at is None:
                continue
            message = f"Step '{step.name}' leads to '{arc.step}', which is not a step of this workflow."
            fix = "Name an existing step, or add a step with this name."
            yield at(arc.step_at, message + subject.suggestions.did_you_mean(arc.step, names), fix)


RULE = Rule(
    code="NOE201",
    name="unknown-arc-target",
    severity="error",
    summary="An arc leads to a step that does not exist.",
    why="The token would have nowhere to go, and the branch would silently end in the middle of a run.",
    fix="Correct the name, or add the missing step.",
    bad=GOOD.replace("next: store", "next: stoer"),
    good=GOOD,
    check=check,
)
