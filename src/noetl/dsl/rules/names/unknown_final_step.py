"""NOE205 reports a final step that is not in the workflow."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: nightly, path: examples/nightly }
executor: { spec: { final_step: report } }
workflow:
  - step: load
    tool: { kind: noop }
  - step: report
    tool: { kind: noop, message: "{{ args.failures | length }} failures" }
"""


def check(subject: Subject) -> Iterator[Found]:
    named = subject.playbook.executor.spec.get("final_step")
    steps = subject.names.steps
    if named is None or named.at is None or not isinstance(named.data, str) or not steps:
        return
    if named.data not in steps and named.data not in subject.obscured:
        message = f"The final step '{named.data}' is not a step of this workflow.{did_you_mean(named.data, steps)}"
        yield at(named.at, message, "Name an existing step, or add a step with this name.")


RULE = Rule(
    code="NOE205",
    name="unknown-final-step",
    group="names",
    severity="error",
    summary="`final_step` names a step that does not exist.",
    why="What should happen at the end of every run, such as a report or a clean-up, would never happen.",
    fix="Correct the name, or add the missing step.",
    bad=GOOD.replace("final_step: report", "final_step: reprot"),
    good=GOOD,
    check=check,
)
