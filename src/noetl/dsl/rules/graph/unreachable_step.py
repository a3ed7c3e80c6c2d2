"""NOE401 reports a step that no token can reach."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.rules.graph.stranded_steps import stranded

GOOD = example("""\
workflow:
  - step: fetch
    tool: { kind: noop }
    next: store
  - step: store
    tool: { kind: noop }
""")


_LISTED = 20


def check(subject: CheckContext) -> Iterator[Finding]:
    net = subject.net
    live = net.live()
    for number, cause in stranded(subject).items():
        step = net.steps[number]
        if cause is not None or step.name_at is None:
            continue
        behind = net.reach[number] & ~(1 << number) & ~live
        if all(edge.source == number for edge in net.into[number]):
            message = f"Step '{step.name}' never runs: no arc leads to it, and it is not the entry."
        else:
            message = f"Step '{step.name}' never runs: only steps that never run lead to it."
        if behind:
            names = [repr(other.name) for other in islice(net.members(behind), _LISTED)]
            names += ["…"] if behind.bit_count() > _LISTED else []
            message += f" The same applies to {', '.join(names)} after it."
        yield at(step.name_at, message, f"Add an arc to it (`next: {step.name}` on the step before), or remove it.")


RULE = Rule(
    code="NOE401",
    name="unreachable-step",
    severity="warning",
    summary="A step can never run: no path of arcs leads from the entry to it.",
    why="The step is silently left out of every run. Usually an arc is missing.",
    fix="Add the missing arc, make the step the entry, the final step or a compensation, or remove it.",
    bad=GOOD.replace("    next: store\n", ""),
    good=GOOD,
    check=check,
)
