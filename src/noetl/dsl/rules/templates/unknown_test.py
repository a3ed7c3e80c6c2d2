"""NOE304 reports a test that does not exist."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.templates.reporting import problem_check

GOOD = example("""\
workload: { limit: 10 }
workflow:
  - step: count
    tool: { kind: noop, result: "{{ workload.limit if workload.limit is defined else 5 }}" }
""")

RULE = Rule(
    code="NOE304",
    name="unknown-test",
    severity="error",
    summary="A template uses a test (`x is …`) that does not exist.",
    why="The template fails when it is evaluated.",
    fix="Correct the name of the test.",
    bad=GOOD.replace("is defined", "is define"),
    good=GOOD,
    check=problem_check("test", "Use an existing test: `defined`, `none`, `string`, `number`, `mapping`, …"),
)
