"""NOE008 reports a file or a number that is larger than a playbook may be."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.reading.problems import told
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: count, path: examples/count }
workload:
  most: 1000
workflow:
  - step: report
    tool:
      kind: noop
      message: "At most {{ workload.most }}."
"""


def check(subject: Subject) -> Iterator[Found]:
    fix = "Keep data outside the playbook, and name the file, table or object to read it from."
    return told(subject, fix, "too-large")


RULE = Rule(
    code="NOE008",
    name="too-large",
    group="reading",
    severity="error",
    summary="The file has more than 4 MiB or 500,000 values, or a number in it more than 500 digits.",
    why="A playbook says what to do; every server and worker keeps it in memory. Data of this size belongs in a store.",
    fix="Put the data into a file, a table or an object store, and read it with a task.",
    bad=GOOD.replace("most: 1000", f"most: {'1000' * 126}"),
    good=GOOD,
    check=check,
)
