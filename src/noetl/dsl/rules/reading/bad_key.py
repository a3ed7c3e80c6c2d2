"""NOE004 reports a key that is not a text: a list, a map, or nothing."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.reading.problems import told
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: limits, path: examples/limits }
workload:
  limits: { small: 10, large: 100 }
workflow:
  - step: report
    tool:
      kind: noop
      message: "At most {{ workload.limits.large }}."
"""


def check(subject: Subject) -> Iterator[Found]:
    return told(subject, "Give the value a key that is one word or a quoted text.", "bad-key")


RULE = Rule(
    code="NOE004",
    name="bad-key",
    group="reading",
    severity="error",
    summary="A key is a list, a map, or missing.",
    why="Templates read a value by the text of its key; nothing could ever read this one.",
    fix="Write a word or a quoted text before the colon.",
    bad=GOOD.replace("{ small: 10,", "{ [small]: 10,"),
    good=GOOD,
    check=check,
)
