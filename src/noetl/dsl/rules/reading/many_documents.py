"""NOE011 reports a second document in the file."""

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
    return told(subject, "Move the second playbook to a file of its own.", "many-documents")


RULE = Rule(
    code="NOE011",
    name="many-documents",
    group="reading",
    severity="error",
    summary="The file holds more than one document.",
    why="A file is one playbook: it has one name, one version and one history. The others would not be registered.",
    fix="Give every playbook a file of its own, and call one from another with `kind: playbook`.",
    bad=GOOD + "---\n" + GOOD,
    good=GOOD,
    check=check,
)
