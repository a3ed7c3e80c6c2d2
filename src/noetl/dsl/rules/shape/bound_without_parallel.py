"""NOE126 reports `max_in_flight` on a sequential loop."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import Scalar

GOOD = example("""\
workload: { cities: [Oslo, Bergen] }
workflow:
  - step: sweep
    loop:
      in: "{{ workload.cities }}"
      iterator: city
      spec: { mode: parallel, max_in_flight: 5 }
    tool: { kind: noop, message: "{{ city }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for step in subject.playbook.workflow:
        if step.loop is None or step.loop.mode != "sequential":
            continue
        bound = step.loop.spec.get("max_in_flight")
        node = bound.at if bound else None
        if isinstance(node, Scalar) and node.value != 1 and not subject.loop_means(step.loop, "mode"):
            message = f"The loop of step '{step.name}' is sequential, so `max_in_flight` has no effect."
            yield at(node, message, "Add `mode: parallel` next to it, or remove it.")


RULE = Rule(
    code="NOE126",
    name="bound-without-parallel",
    severity="warning",
    summary="A loop has `max_in_flight` but is not parallel.",
    why="A loop is sequential by default: its items run one after another, whatever the limit. "
    "The run is correct, but much slower than you expect.",
    fix="Add `mode: parallel` under `loop.spec`, or remove the limit.",
    bad=GOOD.replace("{ mode: parallel, max_in_flight: 5 }", "{ max_in_flight: 5 }"),
    good=GOOD,
    check=check,
)
