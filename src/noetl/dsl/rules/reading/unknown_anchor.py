"""NOE006 reports an alias without a preceding anchor."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.reading.problems import problem_check

GOOD = example("""\
workload:
  first: &window { days: 7 }
  second: *window
workflow:
  - step: report
    tool:
      kind: noop
      message: "{{ workload.first.days }} and {{ workload.second.days }} days."
""")

RULE = Rule(
    code="NOE006",
    name="unknown-anchor",
    severity="error",
    summary="An alias (`*name`) has no anchor (`&name`) before it.",
    why="An alias repeats the value that an anchor marks. Without an anchor there is nothing to repeat.",
    fix="Mark the value with `&name` above the alias. Quote a text that begins with `*`.",
    bad=GOOD.replace("*window", "*windows"),
    good=GOOD,
    check=problem_check(
        "unknown-anchor",
        fix="Write the anchor (`&name`) above its first alias, or put the value in quotes if it is plain text.",
    ),
)
