"""NOE206 reports a `compensate` that names no step."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example

GOOD = example("""\
workload: { api: "http://127.0.0.1:8080" }
policy: { rollback: on_fail }
workflow:
  - step: reserve
    tool: { kind: http, method: POST, url: "{{ workload.api }}/rooms" }
    compensate: release
    next: charge
  - step: charge
    tool: { kind: http, method: POST, url: "{{ workload.api }}/charges" }
  - step: release
    tool: { kind: http, method: DELETE, url: "{{ workload.api }}/rooms/{{ reserve.data.id }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    steps = subject.names.steps
    for step in subject.playbook.workflow:
        name = step.compensate
        if name is None or step.compensate_at is None or name in steps or name in subject.obscured:
            continue
        message = f"Step '{step.name}' has the compensation '{name}', which is not a step of this workflow."
        fix = "Name an existing step, or add a step that undoes this one."
        yield at(step.compensate_at, message + subject.suggestions.did_you_mean(name, steps), fix)


RULE = Rule(
    code="NOE206",
    name="unknown-compensation",
    severity="error",
    summary="`compensate` names a step that does not exist.",
    why="After a failure, the work of this step would not be undone, although the playbook asks for it.",
    fix="Correct the name, or add the step that undoes the work.",
    bad=GOOD.replace("compensate: release", "compensate: relase"),
    good=GOOD,
    check=check,
)
