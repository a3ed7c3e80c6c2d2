"""NOE002 reports a tab where YAML allows only spaces."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.reading.problems import problem_check

GOOD = example("""\
workflow:
  - step: greet
    tool: { kind: noop }
""")

RULE = Rule(
    code="NOE002",
    name="tab",
    severity="error",
    summary="A tab is used where YAML allows only spaces.",
    why="Editors show tabs in different widths, so YAML forbids them for indentation: the line could belong to any level.",
    fix="Indent with two spaces per level.",
    bad=GOOD.replace("    tool:", "\t\ttool:"),
    good=GOOD,
    check=problem_check("tab", fix="Replace the tab with spaces; most editors can convert the whole file."),
)
