"""NOE013 reports a document that is a list or one value instead of a map."""

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
    return told(subject, "Put the steps under `workflow:`, beside `apiVersion`, `kind` and `metadata`.", "not-a-map")


RULE = Rule(
    code="NOE013",
    name="not-a-map",
    group="reading",
    severity="error",
    summary="The document is a list or a single value, not a map.",
    why="A playbook says who it is beside what it does; a bare list of steps has no place for it.",
    fix="Begin with `apiVersion`, `kind` and `metadata`, and put the steps under `workflow`.",
    bad="- step: greet\n  tool: { kind: noop }\n",
    good=GOOD,
    check=check,
)
