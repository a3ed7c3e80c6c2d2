"""NOE132 reports a schedule in `triggers` that could not fire as it is written."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.triggers import misnamed, node_of
from noetl.dsl.reading.nodes import Node
from noetl.dsl.tree.playbook import Trigger
from noetl.schedules.spec import Problem, ScheduleSpec

GOOD = example("""\
workflow:
  - step: ping
    tool: { kind: noop }
triggers:
  - schedule: nightly
    cron: "30 2 * * *"
    timezone: Europe/Vienna
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for trigger, node, problem in misnamed(subject.playbook, "schedule"):
        if problem is not None:
            yield at(node, *problem)
        else:
            yield from _problem(trigger, node)


def _problem(trigger: Trigger, name: Node) -> Iterator[Finding]:
    from noetl.schedules.times import times_of  # loads the library of cron expressions

    try:
        times_of(msgspec.convert({key: value.data for key, value in trigger.fields.items()}, ScheduleSpec))
    except Problem as problem:
        yield at(node_of(trigger, problem.field) or name, f"In `{problem.field}`: {problem.what}", problem.fix)
    except msgspec.ValidationError:
        return  # a wrong key or type, which other rules report


RULE = Rule(
    code="NOE132",
    name="bad-schedule",
    severity="error",
    summary="A schedule in `triggers` could not fire as it is written.",
    why="A schedule needs one kind of times that exist, in a time zone that exists, and a name of its own: otherwise the "
    "playbook would never start, or not when you expect it.",
    fix="Write one of `cron`, `every` and `calendar`, and an IANA time zone.",
    bad=GOOD.replace("30 2 * * *", "30 25 * * *"),
    good=GOOD,
    check=check,
)
