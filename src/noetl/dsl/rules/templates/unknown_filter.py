"""NOE303 reports a filter that does not exist."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.templates.reporting import problem_check

GOOD = example("""\
workload: { who: world }
workflow:
  - step: greet
    tool: { kind: noop, message: "{{ workload.who | upper }}" }
""")

RULE = Rule(
    code="NOE303",
    name="unknown-filter",
    severity="error",
    summary="A template uses a filter that does not exist.",
    why="The template fails when it is evaluated.",
    fix="Correct the name. Non-deterministic filters and filters that access Python objects are left out on purpose.",
    bad=GOOD.replace("| upper", "| uper"),
    good=GOOD,
    check=problem_check(
        "filter", "Use an existing filter, such as `default`, `join`, `length`, `map`, `round` or `tojson`."
    ),
)
