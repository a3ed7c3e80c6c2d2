"""NOE006 reports an alias whose anchor does not stand before it."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.reading.problems import told
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: twice, path: examples/twice }
workload:
  first: &window { days: 7 }
  second: *window
workflow:
  - step: report
    tool:
      kind: noop
      message: "{{ workload.first.days }} and {{ workload.second.days }} days."
"""


def check(subject: Subject) -> Iterator[Found]:
    fix = "Write the anchor (`&name`) above its first alias, or put the value in quotes if it is meant as text."
    return told(subject, fix, "unknown-anchor")


RULE = Rule(
    code="NOE006",
    name="unknown-anchor",
    group="reading",
    severity="error",
    summary="An alias (`*name`) has no anchor (`&name`) before it.",
    why="An alias repeats what an anchor has marked; without one there is nothing to repeat.",
    fix="Mark the value with `&name` above the alias. A text that begins with `*` belongs in quotes.",
    bad=GOOD.replace("*window", "*windows"),
    good=GOOD,
    check=check,
)
