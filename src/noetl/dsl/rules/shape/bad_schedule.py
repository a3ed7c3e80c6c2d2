"""NOE132 reports a schedule in `triggers` that could not fire as it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode, Node
from noetl.dsl.tree.playbook import Trigger
from noetl.schedules.spec import NAME, Problem, ScheduleSpec

GOOD = example("""\
workflow:
  - step: ping
    tool: { kind: noop }
triggers:
  - schedule: nightly
    cron: "30 2 * * *"
    timezone: Europe/Vienna
""")
_MOST = 100


def check(subject: CheckContext) -> Iterator[Finding]:
    triggers = subject.playbook.triggers
    names = [trigger.name for trigger in triggers]
    for index, trigger in enumerate(triggers):
        node = _node(trigger, "schedule")
        if node is None:
            continue
        if not re.fullmatch(NAME, trigger.name):
            yield at(node, f"'{trigger.name}' is no name of a schedule.", "Write letters, digits, `.`, `_` and `-`.")
        elif trigger.name in names[:index]:
            yield at(node, f"There are two schedules '{trigger.name}'.", "Give each its own name.")
        elif index >= _MOST:
            yield at(
                node, f"A playbook has at most {_MOST} schedules.", "Make the others with `noetl schedule create`."
            )
        else:
            yield from _problem(trigger, node)


def _problem(trigger: Trigger, name: Node) -> Iterator[Finding]:
    from noetl.schedules.times import times_of  # loads the library of cron expressions

    try:
        times_of(msgspec.convert({key: value.data for key, value in trigger.fields.items()}, ScheduleSpec))
    except Problem as problem:
        yield at(_node(trigger, problem.field) or name, f"In `{problem.field}`: {problem.what}", problem.fix)
    except msgspec.ValidationError:
        return  # a wrong key or type, which other rules report


def _node(trigger: Trigger, field: str) -> Node | None:
    found: Node | None = trigger.at
    for part in field.split("."):
        found = found.get(part) if isinstance(found, MapNode) else None
    return found


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
