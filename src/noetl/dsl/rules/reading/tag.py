"""NOE005 reports a YAML tag that is unsupported or does not fit its value."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.reading.problems import problem_check

GOOD = example("""\
workload:
  target: !!str 2024
workflow:
  - step: report
    tool:
      kind: noop
      message: "Copied to {{ workload.target }}."
""")

RULE = Rule(
    code="NOE005",
    name="tag",
    severity="error",
    summary="A tag such as `!env` or `!!python/object` is not allowed in a playbook.",
    why="A tag tells the YAML parser to build something other than plain data. Many programs read a playbook, "
    "so nothing in it may run code or access the machine that reads it.",
    fix="Remove the tag. `!!str`, `!!int`, `!!float`, `!!bool`, `!!null`, `!!map` and `!!seq` are supported; "
    "pass other values through `workload` or `keychain`.",
    bad=GOOD.replace("!!str 2024", "!env TARGET"),
    good=GOOD,
    check=problem_check("tag", fix="Remove the tag. For a value from the environment, use `workload` or `keychain`."),
)
