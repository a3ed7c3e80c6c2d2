"""NOE116 reports a step with neither a `tool` nor a `next`."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.shape import stand_ins
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: work, path: examples/work }
workflow:
  - step: work
    tool: { kind: noop }
    next: end
  - step: end
    tool: { kind: noop, message: All done }
"""


def check(subject: Subject) -> Iterator[Found]:
    instead = stand_ins(subject.shape)
    for step in subject.playbook.workflow:
        node = step.at
        if not isinstance(node, MapNode) or step.name_at is None:
            continue
        if any(not _says_nothing(node.get(key)) or (id(node), key) in instead for key in ("tool", "next")):
            continue
        message = f"Step '{step.name}' has neither a `tool` nor a `next`: it does nothing and leads nowhere."
        yield at(step.name_at, message, "Add `tool: { kind: noop }` if the step only marks the end of a branch.")


def _says_nothing(node: Node | None) -> bool:
    """Tell a key that is absent, null, or a router without arcs; an empty pipeline is told elsewhere."""
    if isinstance(node, MapNode):
        arcs = node.get("arcs")
        return isinstance(arcs, ListNode) and not arcs.items
    return node is None or (isinstance(node, Scalar) and node.value is None)


RULE = Rule(
    code="NOE116",
    name="idle-step",
    group="shape",
    severity="error",
    summary="A step has neither a `tool` nor a `next`.",
    why="It neither works nor routes. Most often an indentation is off by one level, so that its `tool` belongs elsewhere.",
    fix="Give it a `tool` (`kind: noop` does nothing and succeeds), or a `next`, or remove the step.",
    bad=GOOD.replace("    tool: { kind: noop, message: All done }\n", "    desc: All done\n"),
    good=GOOD,
    check=check,
)
