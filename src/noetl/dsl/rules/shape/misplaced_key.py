"""NOE102 reports a key that belongs to another level of the language."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.shape import ShapeFinding
from noetl.dsl.grammar.misplaced_keys import Place
from noetl.dsl.grammar.titles import where
from noetl.dsl.grammar.wording import listed

GOOD = example("""\
workflow:
  - step: split
    next:
      spec: { mode: inclusive }
      arcs:
        - step: mail
        - step: chat
  - step: mail
    tool: { kind: noop, message: Sent by mail }
  - step: chat
    tool: { kind: noop, message: Sent by chat }
""")
_WHEN_ON_A_TASK = (
    "To choose whether the step runs, put the condition on the arc that leads to it or under the step's "
    "`spec.policy.admit.rules`; to act on the outcome of the task, under `spec.policy.rules`."
)
_ROUTE_IN_A_POLICY = "Let the task fail, break or set a value, and choose the next step under the step's `next.arcs`."


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        if finding.kind == "misplaced" and finding.place:
            names = [finding.name, *finding.others]
            belong = "belong" if len(names) > 1 else "belongs"
            here = where(finding.level) if finding.place.outside else f"directly {where(finding.level)}"
            message = f"{listed(names)} {belong} {finding.place}, not {here}."
            yield at(finding.node, message, _fix(finding, finding.place, "them" if len(names) > 1 else "it"))


def _fix(finding: ShapeFinding, place: Place, what: str) -> str:
    level = finding.level.name.partition(":")[0]
    if level == "task" and finding.name == "when":
        return _WHEN_ON_A_TASK
    if level == "task_then" and finding.name in ("next", "step", "arcs"):
        return _ROUTE_IN_A_POLICY
    preposition, _, words = str(place).partition(" ")
    towards = {"on": "to", "in": "into", "at": "to"}.get(preposition, preposition)
    return f"Move {what} {towards} {words}."


RULE = Rule(
    code="NOE102",
    name="misplaced-key",
    severity="error",
    summary="A key is at a level that does not have it; it belongs to another level.",
    why="The setting would have no effect here: a step would not be gated, a fork not taken, a call not retried.",
    fix="Move the key to the level that the message names.",
    bad=GOOD.replace("    next:\n      spec: { mode: inclusive }\n", "    mode: inclusive\n    next:\n"),
    good=GOOD,
    check=check,
)
