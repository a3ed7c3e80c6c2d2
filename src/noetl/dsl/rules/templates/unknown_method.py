"""NOE306 reports a call of a method that plain data does not have."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.templates.reporting import problems
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: names, path: examples/names }
workload: { name: "  Ada " }
workflow:
  - step: tidy
    tool: { kind: noop, result: "{{ workload.name.strip() }}" }
"""


def check(subject: Subject) -> Iterator[Found]:
    yield from problems(
        subject, "method", "Use a filter, or one of the methods of text, lists and maps that only read."
    )


RULE = Rule(
    code="NOE306",
    name="unknown-method",
    group="templates",
    severity="error",
    summary="A template calls a method that does not exist.",
    why=(
        "Text, lists and maps have a short list of methods, all of which only read. Methods that would change a value "
        "(`append`, `update`) do not exist, because templates change nothing."
    ),
    fix="Use a filter (`x | sort`), make a new value (`a + [b]`), or do the work in a python task.",
    bad=GOOD.replace(".strip()", ".trimm()"),
    good=GOOD,
    check=check,
)
