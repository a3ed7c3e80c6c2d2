"""Finds the steps that no token comes to, and the router that was most likely meant to lead there.

Shared by the rules that tell of the step and of the router, so that one mistake is told once. Tested in
tests/unit/dsl/rules/test_graph.py.
"""

from __future__ import annotations

from noetl.dsl.playbook import Step
from noetl.dsl.subject import Subject

_ROOTS = frozenset({"entry_step", "final_step", "compensate"})


def stranded(subject: Subject) -> dict[int, int | None]:
    """Give the steps that never run and are not behind another such step, in file order.

    Each comes with the router that was most likely meant to lead there: the last one above it that has arcs, but none for
    a success.
    """
    net = subject.net
    living = net.live()
    if not subject.net_is_whole or living == (1 << len(net.steps)) - 1:
        return {}
    if any(not step.tasks and not step.arcs for step in net.members(living)):
        return {}  # a step that does nothing and leads nowhere is told already, and most likely lost its arcs
    if any(finding.name in _ROOTS for finding in subject.shape):
        return {}
    dead = [number for number in range(len(net.steps)) if not living >> number & 1]
    heads = [n for n in dead if all(edge.source == n or living >> edge.source & 1 for edge in net.into[n])]
    covered = 0
    found: list[int] = []
    for number in (*heads, *dead):
        if not covered >> number & 1:
            found.append(number)
            covered |= 1 << number | net.reach[number]
    routers = [n for n, step in enumerate(net.steps) if living >> n & 1 and only_on_failure(subject, step)]
    return {head: max((router for router in routers if router < head), default=None) for head in sorted(found)}


def only_on_failure(subject: Subject, step: Step) -> bool:
    """Tell whether a step has arcs, none of which can be taken after a success."""
    return bool(step.arcs) and not subject.flow.ways(step, subject.flow.success(step)).possible
