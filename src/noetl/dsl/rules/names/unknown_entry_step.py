"""NOE204 reports an entry step that is not in the workflow."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
executor: { spec: { entry_step: greet } }
workflow:
  - step: part
    tool: { kind: noop }
  - step: greet
    tool: { kind: noop }
    next: part
"""


def check(subject: Subject) -> Iterator[Found]:
    named = subject.playbook.executor.spec.get("entry_step")
    steps = subject.names.steps
    if named is None or named.at is None or not isinstance(named.data, str) or not steps:
        return
    if named.data not in steps and named.data not in subject.obscured:
        message = f"The entry step '{named.data}' is not a step of this workflow.{did_you_mean(named.data, steps)}"
        yield at(named.at, message, "Name an existing step, or leave `entry_step` out: the first step is the entry.")


RULE = Rule(
    code="NOE204",
    name="unknown-entry-step",
    group="names",
    severity="error",
    summary="`entry_step` names a step that does not exist.",
    why="The execution would have no place to put its first token.",
    fix="Correct the name. Without `entry_step` the first step of the file is the entry.",
    bad=GOOD.replace("entry_step: greet", "entry_step: great"),
    good=GOOD,
    check=check,
)
