"""NOE134 reports a trigger of ends that would start itself, or could not start."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.triggers import misnamed, node_of
from noetl.dsl.reading.nodes import Node
from noetl.dsl.tree.playbook import Trigger
from noetl.schedules.spec import Problem
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
    for trigger, node, problem in misnamed(subject.playbook, "ended"):
        if problem is not None:
            yield at(node, *problem)
        else:
            yield from _problem(trigger, node, subject.playbook.path)


def _problem(trigger: Trigger, name: Node, own: str) -> Iterator[Finding]:
    try:
        check_spec(msgspec.convert({key: value.data for key, value in trigger.fields.items()}, EndedSpec), own)
    except Problem as problem:
        yield at(node_of(trigger, problem.field) or name, f"In `{problem.field}`: {problem.what}", problem.fix)
    except msgspec.ValidationError:
        return  # a wrong key or type, which other rules report


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
