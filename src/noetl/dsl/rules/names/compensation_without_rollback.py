"""NOE207 reports compensations in a playbook that never rolls back."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at
from noetl.dsl.rules.names.unknown_compensation import GOOD


def check(subject: CheckContext) -> Iterator[Finding]:
    if subject.playbook.rollback is not None or "on_fail" in subject.obscured:
        return
    for step in subject.playbook.workflow:
        if step.compensate is not None and step.compensate_at is not None:
            message = f"Step '{step.name}' has a compensation, but the playbook does not enable rollback."
            fix = "Add `policy: { rollback: on_fail }` at the root, or `rollback: never` if you do not want rollback."
            yield at(step.compensate_at, message, fix)
            return


RULE = Rule(
    code="NOE207",
    name="compensation-without-rollback",
    severity="warning",
    summary="Steps have compensations, but nothing runs them.",
    why="Compensations run only under `policy: { rollback: on_fail }`. Without it, a failed run leaves its work half done.",
    fix="Add `policy: { rollback: on_fail }` at the root of the playbook. `rollback: never` turns this warning off.",
    bad=GOOD.replace("policy: { rollback: on_fail }\n", ""),
    good=GOOD,
    check=check,
)
