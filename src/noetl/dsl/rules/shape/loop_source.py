"""NOE119 reports a loop with nothing to go over, or with two things."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.nodes import MapNode, Scalar
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.shape import stand_ins
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: sweep, path: examples/sweep }
workload: { cities: [Oslo, Bergen] }
workflow:
  - step: sweep
    loop: { in: "{{ workload.cities }}", iterator: city }
    tool: { kind: noop, message: "{{ city }}" }
"""


def check(subject: Subject) -> Iterator[Found]:
    instead = stand_ins(subject.shape)
    for step in subject.playbook.workflow:
        node = step.loop.at if step.loop else None
        if not isinstance(node, MapNode) or not instead.isdisjoint(((id(node), "in"), (id(node), "cursor"))):
            continue
        cursor, items = node.entry("cursor"), node.get("in")
        if items is not None and cursor:
            message = f"The loop of step '{step.name}' has both `in` and `cursor`; it can go over one of them only."
            yield at(cursor.key, message, "Keep `in` for a list, or `cursor` for rows that are claimed one by one.")
        elif cursor is None and (items is None or (isinstance(items, Scalar) and items.value is None)):
            message = f"The loop of step '{step.name}' has nothing to go over."
            yield at(node, message, 'Add `in: "{{ … }}"` with the list, or a `cursor`.')


RULE = Rule(
    code="NOE119",
    name="loop-source",
    group="shape",
    severity="error",
    summary="A loop has neither `in` nor `cursor`, or both.",
    why="`in` names a list that is known when the loop begins; a `cursor` claims rows until none is left. "
    "A loop needs one of them to know its items, and cannot follow two.",
    fix='Write `in: "{{ … }}"` for a list, or `cursor: { kind, claim, key }` for rows of a table.',
    bad=GOOD.replace('in: "{{ workload.cities }}", ', ""),
    good=GOOD,
    check=check,
)
