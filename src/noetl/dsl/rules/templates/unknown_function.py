"""NOE305 reports a call of a function that does not exist."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.templates.reporting import problem_check

GOOD = example("""\
workflow:
  - step: stamp
    tool: { kind: noop, result: { id: "{{ gen_uuid() }}" } }
""")

RULE = Rule(
    code="NOE305",
    name="unknown-function",
    severity="error",
    summary="A template calls a function that does not exist.",
    why=(
        "Templates can only call the built-in functions: they work on plain data, and a value is never a function. "
        "Many functions of other languages are filters here: `len(x)` is `x | length`."
    ),
    fix="Correct the name, or use a filter.",
    bad=GOOD.replace("gen_uuid()", "uuid4()"),
    good=GOOD,
    check=problem_check("function", "Call an existing function: `now()`, `gen_uuid()`, `range()`, `done('step')`, …"),
)
