"""NOE306 reports a call of a method that does not exist."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.templates.reporting import problem_check

GOOD = example("""\
workload: { name: "  Ada " }
workflow:
  - step: tidy
    tool: { kind: noop, result: "{{ workload.name.strip() }}" }
""")

RULE = Rule(
    code="NOE306",
    name="unknown-method",
    severity="error",
    summary="A template calls a method that does not exist.",
    why=(
        "Text, lists and maps have a few read-only methods. Methods that change a value (`append`, `update`) do not exist, "
        "because templates change nothing."
    ),
    fix="Use a filter (`x | sort`), build a new value (`a + [b]`), or do the work in a python task.",
    bad=GOOD.replace(".strip()", ".trimm()"),
    good=GOOD,
    check=problem_check("method", "Use a filter, or one of the read-only methods of text, lists and maps."),
)
