"""NOE126 reports `max_in_flight` on a loop that runs its items one after another."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.nodes import MapNode, Node, Scalar
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
    loop:
      in: "{{ workload.cities }}"
      iterator: city
      spec: { mode: parallel, max_in_flight: 5 }
    tool: { kind: noop, message: "{{ city }}" }
"""


def check(subject: Subject) -> Iterator[Found]:
    for step in subject.playbook.workflow:
        if step.loop is None or step.loop.mode != "sequential":
            continue
        bound = step.loop.spec.get("max_in_flight")
        node = bound.at if bound else None
        if isinstance(node, Scalar) and node.value != 1 and not _names_mode(subject, step.loop.at):
            message = f"The loop of step '{step.name}' is sequential, so `max_in_flight` has no effect."
            yield at(node, message, "Add `mode: parallel` beside it, or remove it.")


def _names_mode(subject: Subject, loop: Node | None) -> bool:
    """Tell whether the mode is there, only misspelled or misplaced."""
    spec = loop.get("spec") if isinstance(loop, MapNode) else None
    return not stand_ins(subject.shape).isdisjoint(((id(loop), "mode"), (id(spec), "mode")))


RULE = Rule(
    code="NOE126",
    name="bound-without-parallel",
    group="shape",
    severity="warning",
    summary="`max_in_flight` stands on a loop that is not parallel.",
    why="A loop is sequential unless it says `mode: parallel`: its items run one after another, whatever the bound. "
    "The run is right, but many times slower than its author expects.",
    fix="Add `mode: parallel` under `loop.spec`, or remove the bound.",
    bad=GOOD.replace("{ mode: parallel, max_in_flight: 5 }", "{ max_in_flight: 5 }"),
    good=GOOD,
    check=check,
)
