"""NOE002 reports a tab where YAML takes spaces only."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.reading.problems import told
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: greet, path: examples/greet }
workflow:
  - step: greet
    tool: { kind: noop }
"""


def check(subject: Subject) -> Iterator[Found]:
    return told(subject, "Replace the tab by spaces; most editors can do it for the whole file.", "tab")


RULE = Rule(
    code="NOE002",
    name="tab",
    group="reading",
    severity="error",
    summary="A tab stands where YAML takes spaces only.",
    why="Editors show tabs in different widths, so YAML does not let them indent: the line could belong to any level.",
    fix="Indent with spaces, two for each level.",
    bad=GOOD.replace("    tool:", "\t\ttool:"),
    good=GOOD,
    check=check,
)
