"""NOE205 reports a `final_step` that names no step."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.names.step_settings import step_setting_check

GOOD = example("""\
executor: { spec: { final_step: report } }
workflow:
  - step: load
    tool: { kind: noop }
  - step: report
    tool: { kind: noop, message: "{{ args.failures | length }} failures" }
""")

RULE = Rule(
    code="NOE205",
    name="unknown-final-step",
    severity="error",
    summary="`final_step` names a step that does not exist.",
    why="Work for the end of every run, such as a report or a cleanup, would never happen.",
    fix="Correct the name, or add the missing step.",
    bad=GOOD.replace("final_step: report", "final_step: reprot"),
    good=GOOD,
    check=step_setting_check("final_step", "Name an existing step, or add a step with this name."),
)
