"""NOE116 reports a step with neither a `tool` nor a `next`."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Rewritten, Scalar

GOOD = example("""\
workflow:
  - step: work
    tool: { kind: noop }
    next: end
  - step: end
    tool: { kind: noop, message: All done }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    instead = subject.stand_ins
    for step in subject.playbook.workflow:
        node = step.at
        if not isinstance(node, MapNode) or step.name_at is None:
            continue
        if any(not _is_empty(node.get(key)) or (id(node), key) in instead for key in ("tool", "next")):
            continue
        if isinstance(step.name_at, Rewritten):  # it stands for a name that needed no step
            continue
        message = f"Step '{step.name}' has neither a `tool` nor a `next`, so it does nothing: it ends its branch."
        yield at(step.name_at, message, "If it should do something, give it a `tool`; look for one indented wrongly.")


def _is_empty(node: Node | None) -> bool:
    """Return whether a key is absent, null, or a router without arcs."""
    if isinstance(node, MapNode):
        arcs = node.get("arcs")
        return isinstance(arcs, ListNode) and not arcs.items
    return node is None or (isinstance(node, Scalar) and node.value is None)


RULE = Rule(
    code="NOE116",
    name="idle-step",
    severity="hint",
    summary="A step has neither a `tool` nor a `next`.",
    why="The step does no work and routes nowhere. Often the `tool` is indented wrongly and belongs to another level.",
    fix="Add a `tool` (`kind: noop` does nothing and succeeds) or a `next`, or remove the step.",
    bad=GOOD.replace("    tool: { kind: noop, message: All done }\n", "    desc: All done\n"),
    good=GOOD,
    check=check,
)
