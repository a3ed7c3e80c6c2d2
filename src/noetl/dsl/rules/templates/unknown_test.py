"""NOE304 reports a test that does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.templates.reporting import problems
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: optional, path: examples/optional }
workload: { limit: 10 }
workflow:
  - step: count
    tool: { kind: noop, result: "{{ workload.limit if workload.limit is defined else 5 }}" }
"""


def check(subject: Subject) -> Iterator[Found]:
    yield from problems(subject, "test", "Use a test that exists: `defined`, `none`, `string`, `number`, `mapping`, …")


RULE = Rule(
    code="NOE304",
    name="unknown-test",
    group="templates",
    severity="error",
    summary="A template uses a test (`x is …`) that does not exist.",
    why="The template fails as soon as it is evaluated.",
    fix="Correct the name of the test.",
    bad=GOOD.replace("is defined", "is define"),
    good=GOOD,
    check=check,
)
