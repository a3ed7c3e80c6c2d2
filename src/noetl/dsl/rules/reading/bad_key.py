"""NOE004 reports a key that is not text: a list, a map, or nothing."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.reading.problems import problem_check

GOOD = example("""\
workload:
  limits: { small: 10, large: 100 }
workflow:
  - step: report
    tool:
      kind: noop
      message: "At most {{ workload.limits.large }}."
""")

RULE = Rule(
    code="NOE004",
    name="bad-key",
    severity="error",
    summary="A key is a list, a map, or missing.",
    why="Templates look up a value by the text of its key, so no template could read this one.",
    fix="Write a word or a quoted text before the colon.",
    bad=GOOD.replace("{ small: 10,", "{ [small]: 10,"),
    good=GOOD,
    check=problem_check("bad-key", fix="Write one word or a quoted text as the key."),
)
