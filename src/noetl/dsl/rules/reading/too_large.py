"""NOE008 reports a file or a number that exceeds the limits of a playbook."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.reading.problems import problem_check

GOOD = example("""\
workload:
  most: 1000
workflow:
  - step: report
    tool:
      kind: noop
      message: "At most {{ workload.most }}."
""")

RULE = Rule(
    code="NOE008",
    name="too-large",
    severity="error",
    summary="The file is larger than 4 MiB, has more than 500,000 values, or contains a number of more than 500 digits.",
    why="Every server and worker keeps the playbook in memory. Data of this size belongs in a store.",
    fix="Put the data into a file, a table or an object store, and read it with a task.",
    bad=GOOD.replace("most: 1000", f"most: {'1000' * 126}"),
    good=GOOD,
    check=problem_check(
        "too-large", fix="Keep the data outside the playbook, and name the file, table or object to read it from."
    ),
)
