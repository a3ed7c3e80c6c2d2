"""NOE307 reports a statement that templates do not support."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.templates.reporting import problem_check

GOOD = example("""\
workload: { names: [Ada, Max] }
workflow:
  - step: write
    tool:
      kind: noop
      message: "{% for name in workload.names %}{{ name }} {% endfor %}"
""")

RULE = Rule(
    code="NOE307",
    name="refused-statement",
    severity="error",
    summary="A template uses an unsupported statement.",
    why="Templates compute values. Including files or defining macros would make them programs that cannot be checked.",
    fix="Use `{% if %}`, `{% for %}` and `{% set %}`; do anything larger in a python task.",
    bad=GOOD.replace(
        '"{% for name in workload.names %}{{ name }} {% endfor %}"', "\"{% include 'names.txt' %}{{ workload.names }}\""
    ),
    good=GOOD,
    check=problem_check("statement", "Use `if`, `for` or `set`, or do the work in a python task."),
)
