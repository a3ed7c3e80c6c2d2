"""NOE003 reports a key that stands twice in one map."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.reading.problems import told
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: prices, path: examples/prices }
workload:
  currency: EUR
workflow:
  - step: report
    tool:
      kind: noop
      message: "Prices in {{ workload.currency }}."
"""


def check(subject: Subject) -> Iterator[Found]:
    return told(subject, "Keep one of the two, or give one of them another name.", "duplicate-key")


RULE = Rule(
    code="NOE003",
    name="duplicate-key",
    group="reading",
    severity="error",
    summary="A key stands twice in one map.",
    why="A map has one value for each key. Other readers drop one of the two without a word, and not always the same one.",
    fix="Keep one of them. Two steps are two items of a list, each with its own `-`.",
    bad=GOOD.replace("  currency: EUR\n", "  currency: EUR\n  currency: USD\n"),
    good=GOOD,
    check=check,
)
