"""NOE125 reports a loop on a step without a tool."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode

GOOD = example("""\
workload: { cities: [Oslo, Bergen] }
workflow:
  - step: sweep
    loop: { in: "{{ workload.cities }}", iterator: city }
    tool: { kind: noop, message: "{{ city }}" }
    next: report
  - step: report
    tool: { kind: noop }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    instead = subject.stand_ins
    for step in subject.playbook.workflow:
        node = step.at
        if not step.loop or not isinstance(node, MapNode) or (id(node), "tool") in instead:
            continue
        entry = node.entry("loop")
        if entry and "tool" not in node and "next" in node:
            message = f"Step '{step.name}' has a loop but no `tool`, so there is nothing to repeat."
            yield at(entry.key, message, "Add the `tool` that runs for every item, or remove the loop.")


RULE = Rule(
    code="NOE125",
    name="loop-without-tool",
    severity="error",
    summary="A step has a `loop` but no `tool`.",
    why="A loop repeats the pipeline of its own step. A step without a `tool` only routes, and it routes once: "
    "the steps after it do not run once per item.",
    fix="Put the work under the `tool` of this step. For several steps per item, loop over a `kind: playbook` task.",
    bad=GOOD.replace('    tool: { kind: noop, message: "{{ city }}" }\n', ""),
    good=GOOD,
    check=check,
)
