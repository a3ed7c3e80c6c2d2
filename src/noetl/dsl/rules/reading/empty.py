"""NOE012 reports a file without a playbook in it."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.reading.problems import told
from noetl.dsl.subject import Subject

GOOD = """\
# Says good morning.
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: greet, path: examples/greet }
workflow:
  - step: greet
    tool: { kind: noop }
"""


def check(subject: Subject) -> Iterator[Found]:
    return told(subject, "Begin with `apiVersion`, `kind`, `metadata` and a `workflow` of one step.", "empty")


RULE = Rule(
    code="NOE012",
    name="empty",
    group="reading",
    severity="error",
    summary="The file is empty or has comments only.",
    why="There is nothing to run. An empty file is often one that was not saved, or the wrong one.",
    fix="Write the playbook, or name another file.",
    bad="# Says good morning.\n",
    good=GOOD,
    check=check,
)
