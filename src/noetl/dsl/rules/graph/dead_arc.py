"""NOE409 reports an arc that can never be taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from noetl.dsl.analysis.flow import Case, Flow, events_compared
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.shape_findings import hides_routing
from noetl.dsl.tree.playbook import Arc, Step

GOOD = example("""\
workload: { express: false }
workflow:
  - step: pack
    tool: { kind: noop }
    next:
      arcs:
        - step: send_express
          when: "{{ workload.express }}"
        - step: send
  - step: send_express
    tool: { kind: noop }
  - step: send
    tool: { kind: noop }
""")
BAD = GOOD.replace(
    '        - step: send_express\n          when: "{{ workload.express }}"\n        - step: send\n',
    '        - step: send\n        - step: send_express\n          when: "{{ workload.express }}"\n',
)


def check(subject: CheckContext) -> Iterator[Finding]:
    if not subject.is_read_whole or any(map(hides_routing, subject.shape)):
        return
    for step in subject.playbook.workflow:
        reported: set[str] = set()
        above = _Above({}, {})
        for arc in step.arcs:
            place = arc.at if arc.step_at is None else arc.step_at
            reason = _reason(subject.flow, step, arc, above)
            above.add(subject.flow, step, arc)
            if place is None or reason is None or reason[0] in reported:
                continue
            # Other rules report conditions without braces and constant conditions.
            if not subject.flow.is_unreadable(arc.when) and not subject.flow.is_constant(arc.when):
                message = f"The arc from '{step.name}' to '{arc.step}' can never be taken: {reason[0]}."
                reported.add(reason[0])
                yield at(place, message, reason[1])


class _Above(NamedTuple):
    """The first arc above that certainly matches an ending, or has a condition."""

    certain: dict[Case, Arc]
    conditions: dict[str, Arc]

    def add(self, flow: Flow, step: Step, arc: Arc) -> None:
        for ending in flow.endings(step):
            if ending not in self.certain and flow.fires(step, arc, ending) is True:
                self.certain[ending] = arc
        if arc.when is not None:
            self.conditions.setdefault(repr(arc.when.data), arc)


def _reason(flow: Flow, step: Step, arc: Arc, above: _Above) -> tuple[str, str] | None:
    endings = [ending for ending in flow.endings(step) if flow.fires(step, arc, ending) is not False]
    if not endings:
        return _never_true(flow, step, arc)
    if step.router is None or step.router.mode != "exclusive":
        return None
    if not _depends_on_ending(flow, step, arc):
        # After a failure such an arc may match, but without a condition on the ending that is not the intent.
        endings = [ending for ending in endings if ending.is_success]
    covering = [above.certain.get(ending) for ending in endings]
    earlier = next((cover for cover in covering if cover is not None), None)
    if earlier is not None and None not in covering:
        return (
            f"the arc to '{earlier.step}' above it always matches first",
            "Put the arc with the narrower condition first, or take all matching arcs with `next.spec.mode: inclusive`.",
        )
    same = above.conditions.get(repr(arc.when.data)) if arc.when is not None else None
    if same is not None:
        return (
            f"the arc to '{same.step}' above it has the same condition and is taken first",
            "Change one of the conditions, or take all matching arcs with `next.spec.mode: inclusive`.",
        )
    return None


def _depends_on_ending(flow: Flow, step: Step, arc: Arc) -> bool:
    template = flow.template(arc.when)
    if template is None or str(flow.setting(step, "on_step_fail")).startswith("route_edge:"):
        return True
    return "fail(" in template.source or any(read.path[0] in ("event", "outcome", "output") for read in template.reads)


def _never_true(flow: Flow, step: Step, arc: Arc) -> tuple[str, str]:
    template = flow.template(arc.when)
    if template is not None and step.loop is None and "loop.done" in events_compared(template):
        return (
            f"'loop.done' occurs only at the end of a loop, and '{step.name}' has none",
            "Compare `event.name` with 'step.done'.",
        )
    return ("its condition is false whether the step succeeds or fails", "Correct the condition, or remove the arc.")


RULE = Rule(
    code="NOE409",
    name="dead-arc",
    severity="warning",
    summary="An arc can never be taken, because of its condition or because an arc above it always matches first.",
    why=(
        "An exclusive router, the default, takes the first arc that matches, from the top. An arc without `when` matches "
        "every success, so no arc below it is evaluated on success, and its step never runs."
    ),
    fix="Move the arc up, correct its condition, or use `next.spec.mode: inclusive` to take all matching arcs.",
    bad=BAD,
    good=GOOD,
    check=check,
)
