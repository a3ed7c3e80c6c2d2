"""NOE114 reports a template in a field that is not rendered."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.shape import ShapeFinding
from noetl.dsl.grammar.types import Text
from noetl.dsl.grammar.wording import takes

GOOD = example("""\
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
""")
_TARGETS = frozenset({"next", "step", "entry_step", "final_step", "compensate"})


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        # NOE501 reports the kind of a task.
        if finding.kind == "not-templated" and not (finding.name == "kind" and finding.level.name == "task"):
            message = f"'{finding.name}' is read before the run starts; a template in it is never rendered."
            yield at(finding.node, message, _fix(finding))


def _fix(finding: ShapeFinding) -> str:
    if finding.name in _TARGETS:
        return "Write the name of the step. To choose at run time, write one arc per step with a `when`."
    if isinstance(finding.expected, Text):
        return "Write a fixed text."
    return f"Write a fixed value: {takes(finding.expected)}." if finding.expected else "Write a fixed value."


RULE = Rule(
    code="NOE114",
    name="not-templated",
    severity="error",
    summary="A field that is not rendered contains a template.",
    why="Step names, tool kinds, modes and policies define the net, which is checked and drawn before anything runs. "
    "The text with its braces would be used literally.",
    fix="Write a fixed value. Use a `when` to decide at run time.",
    bad=GOOD.replace(
        "- step: thorough\n  - step: quick", "- step: \"{{ workload.other | default('thorough') }}\"\n  - step: quick"
    ),
    good=GOOD,
    check=check,
)
