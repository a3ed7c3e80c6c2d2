"""Find unreachable steps, and the router that should lead to them.

Shared by the rules that report the step and the router, so that one mistake is reported once.
Tested in tests/unit/dsl/rules/test_graph.py.
"""

from __future__ import annotations

from bisect import bisect_left

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.tree.playbook import Step

_ROOTS = frozenset({"entry_step", "final_step", "compensate"})


def stranded(subject: CheckContext) -> dict[int, int | None]:
    """Return the first steps of the parts that never run, in file order.

    Each is mapped to the router that probably should lead there: the last one above it with arcs, but none for success.
    """
    net = subject.net
    living = net.live()
    if not subject.net_is_whole or living == (1 << len(net.steps)) - 1:
        return {}
    if any(not step.tasks and not step.arcs for step in net.members(living)):
        return {}  # NOE116 reports an idle step, which probably lost its arcs
    if any(finding.name in _ROOTS for finding in subject.shape):
        return {}
    dead = [number for number in range(len(net.steps)) if not living >> number & 1]
    heads = [n for n in dead if all(edge.source == n or living >> edge.source & 1 for edge in net.into[n])]
    covered = 0
    firsts: list[int] = []
    for number in (*heads, *dead):
        if not covered >> number & 1:
            firsts.append(number)
            covered |= 1 << number | net.reach[number]
    routers = [n for n, step in enumerate(net.steps) if living >> n & 1 and only_on_failure(subject, step)]
    above = {head: bisect_left(routers, head) for head in sorted(firsts)}
    return {head: routers[count - 1] if count else None for head, count in above.items()}


def only_on_failure(subject: CheckContext, step: Step) -> bool:
    """Return whether a step has arcs, but none that can be taken after a success."""
    return bool(step.arcs) and not subject.flow.ways(step, subject.flow.success(step)).possible
