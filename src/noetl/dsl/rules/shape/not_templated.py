"""NOE114 reports a template at a place where none is rendered."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.grammar.words import takes
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.shape import ShapeFinding
from noetl.dsl.subject import Subject
from noetl.dsl.types import Text

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: choose, path: examples/choose }
workload: { fast: true }
workflow:
  - step: choose
    next:
      arcs:
        - step: quick
          when: "{{ workload.fast }}"
        - step: thorough
  - step: quick
    tool: { kind: noop }
  - step: thorough
    tool: { kind: noop }
"""
_TARGETS = frozenset({"next", "step", "entry_step", "final_step", "compensate"})


def check(subject: Subject) -> Iterator[Found]:
    for finding in subject.shape:
        # A task's kind is told with the kinds.
        if finding.kind == "not-templated" and not (finding.name == "kind" and finding.level.name == "task"):
            message = f"'{finding.name}' is read before the run starts; a template in it is never rendered."
            yield at(finding.node, message, _fix(finding))


def _fix(finding: ShapeFinding) -> str:
    if finding.name in _TARGETS:
        return "Name the step itself; to choose at run time, write one arc for each step, with a `when`."
    if isinstance(finding.expected, Text):
        return "Write the text itself."
    return f"Write {takes(finding.expected)} itself." if finding.expected else "Write the value itself."


RULE = Rule(
    code="NOE114",
    name="not-templated",
    group="shape",
    severity="error",
    summary="A template stands where none is rendered.",
    why="Names of steps, tool kinds, modes and policies make up the net, which is checked and drawn before anything runs. "
    "The text between the braces would be taken as it stands.",
    fix="Write the value itself. What has to be decided at run time is decided by a `when`.",
    bad=GOOD.replace(
        "- step: thorough\n  - step: quick", "- step: \"{{ workload.other | default('thorough') }}\"\n  - step: quick"
    ),
    good=GOOD,
    check=check,
)
