"""NOE134 reports a trigger of ends that would start itself, or could not start."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.checking.triggers import trigger_findings
from noetl.triggers.ended import EndedSpec
from noetl.triggers.ended import check as check_spec

GOOD = example("""\
workload: { which: "" }
workflow:
  - step: report
    tool: { kind: noop }
triggers:
  - ended: after_load
    path: etl/*
    status: [failed]
    payload: { which: "{{ execution.execution_id }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    playbook = subject.playbook
    return trigger_findings(subject, "ended", EndedSpec, lambda spec: check_spec(spec, playbook.path))


RULE = Rule(
    code="NOE134",
    name="bad-ended-trigger",
    severity="error",
    summary="A trigger of ends in `triggers` would start its own playbook again, or could not start it.",
    why="A playbook whose own end starts it never stops, and templates of such a trigger read the ended execution only.",
    fix="Write a `path` that does not match the playbook, and templates over `execution`.",
    bad=GOOD.replace("etl/*", '"*"'),
    good=GOOD,
    check=check,
)
