"""NOE013 reports a document that is a list or a single value instead of a map."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.reading.problems import problem_check

GOOD = example("""\
workflow:
  - step: greet
    tool: { kind: noop }
""")

RULE = Rule(
    code="NOE013",
    name="not-a-map",
    severity="error",
    summary="The document is a list or a single value, not a map.",
    why="A playbook has a version, a name and a path besides its steps. A bare list of steps has no room for them.",
    fix="Begin with `apiVersion`, `kind` and `metadata`, and put the steps under `workflow`.",
    bad="- step: greet\n  tool: { kind: noop }\n",
    good=GOOD,
    check=problem_check(
        "not-a-map", fix="Put the steps under `workflow:`, next to `apiVersion`, `kind` and `metadata`."
    ),
)
