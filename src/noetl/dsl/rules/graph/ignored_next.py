"""NOE413 reports routing of a final step or compensation, without effect."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode, key_at
from noetl.dsl.tree.playbook import Step

GOOD = example("""\
executor:
  spec: { final_step: report }
workflow:
  - step: load
    tool: { kind: noop }
  - step: report
    tool: { kind: noop, message: "{{ args.counts }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    if not subject.net_is_whole:
        return
    net = subject.net
    final = net.steps[net.final] if net.final is not None else None
    if final is not None:
        yield from _final_step(subject, final)
    undo = {step.compensate for step in net.steps if step.compensate}
    for name in sorted(undo & net.index.keys()):
        step = net.steps[net.index[name]]
        place = key_at(step.at, "next")
        if step.arcs and step is not final and place is not None and not _is_routed_to(subject, net.index[name]):
            yield at(
                place,
                f"The arcs of step '{name}' are never taken: it runs as a compensation, which has no next step.",
                "Remove `next`. To undo more, add a `compensate` to the other steps.",
            )


def _final_step(subject: CheckContext, final: Step) -> Iterator[Finding]:
    net = subject.net
    place = key_at(final.at, "next")
    if final.arcs and place is not None:
        yield at(
            place,
            f"The arcs of step '{final.name}' are never taken: it is the final step, and the run ends after it.",
            "Remove `next`, or remove the step from `executor.spec.final_step`.",
        )
    for edge in net.into[net.index[final.name]]:
        if not edge.arc.args:
            continue
        node = edge.arc.at if isinstance(edge.arc.at, MapNode) else None
        args = key_at(node, "args") or key_at(node, "input")
        if args is not None:
            yield at(
                args,
                f"These `args` are lost: '{final.name}' is the final step, which runs once at the end and receives "
                "`counts`, `failures` and `results` instead.",
                "Write the values to `ctx` with `set`, and read them from there.",
            )


def _is_routed_to(subject: CheckContext, number: int) -> bool:
    return number == subject.net.entry or bool(subject.net.into[number])


RULE = Rule(
    code="NOE413",
    name="ignored-next",
    severity="warning",
    summary="A final step or a compensation has arcs, or an arc binds `args` for the final step; both have no effect.",
    why=(
        "The final step runs once, after everything else has ended, and the run ends with it. Tokens that reach it through "
        "arcs are absorbed with their `args`. A compensation only undoes one step. The arcs of both are never evaluated."
    ),
    fix="Remove the arcs, and pass values for the final step through `ctx`.",
    bad=GOOD.replace('counts }}" }\n', 'counts }}" }\n    next: load\n'),
    good=GOOD,
    check=check,
)
