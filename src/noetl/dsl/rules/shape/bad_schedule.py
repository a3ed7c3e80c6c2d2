"""NOE132 reports a schedule in `triggers` that could not fire as it is written."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.checking.triggers import trigger_findings
from noetl.schedules.spec import ScheduleSpec

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
    return trigger_findings(subject, "schedule", ScheduleSpec, _check_spec)


def _check_spec(spec: ScheduleSpec) -> None:
    from noetl.schedules.times import times_of  # loads the library of cron expressions

    times_of(spec)


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
