"""NOE204 reports an `entry_step` that names no step."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.names.step_settings import step_setting_check

GOOD = example("""\
executor: { spec: { entry_step: greet } }
workflow:
  - step: part
    tool: { kind: noop }
  - step: greet
    tool: { kind: noop }
    next: part
""")

RULE = Rule(
    code="NOE204",
    name="unknown-entry-step",
    severity="error",
    summary="`entry_step` names a step that does not exist.",
    why="The execution would have no step to start with.",
    fix="Correct the name. Without `entry_step`, the first step of the file is the entry.",
    bad=GOOD.replace("entry_step: greet", "entry_step: great"),
    good=GOOD,
    check=step_setting_check(
        "entry_step", "Name an existing step, or remove `entry_step`: the first step is then the entry."
    ),
)
