"""NOE012 reports a file without a playbook."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule
from noetl.dsl.rules.reading.problems import problem_check

GOOD = """\
# Says good morning.
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: greet, path: examples/greet }
workflow:
  - step: greet
    tool: { kind: noop }
"""

RULE = Rule(
    code="NOE012",
    name="empty",
    severity="error",
    summary="The file is empty or has comments only.",
    why="There is nothing to run. Often the file was not saved, or the path is wrong.",
    fix="Write the playbook, or pass another file.",
    bad="# Says good morning.\n",
    good=GOOD,
    check=problem_check("empty", fix="Begin with `apiVersion`, `kind`, `metadata` and a `workflow` of one step."),
)
