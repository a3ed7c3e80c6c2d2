"""NOE308 reports a template that reads an attribute of a Python object."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.templates.reporting import problem_check

GOOD = example("""\
workload: { value: 1 }
workflow:
  - step: look
    tool: { kind: noop, message: "{{ workload.value is number }}" }
""")

RULE = Rule(
    code="NOE308",
    name="python-attribute",
    severity="error",
    summary="A template reads an attribute of a Python object.",
    why="Templates work on plain data: text, numbers, lists and maps. The name after a dot is a key, never a Python attribute.",
    fix="Use a test such as `is number`, a filter, or a python task.",
    bad=GOOD.replace("workload.value is number", "workload.value.__class__"),
    good=GOOD,
    check=problem_check("attribute", "Look up a key of your data instead, or do the work in a python task."),
)
