"""The Petri net of a playbook: steps, arcs between them, and reachability.

Arcs to steps that do not exist are left out; a rule reports them. Tested in tests/unit/dsl/analysis/test_net.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from noetl.dsl.tree.playbook import Arc, Playbook, Step


class Edge(NamedTuple):
    """An arc between two steps that exist."""

    source: int
    target: int
    arc: Arc


class Net(Struct, frozen=True):
    """Steps by number, edges, and reachability as bit sets."""

    steps: tuple[Step, ...]
    index: dict[str, int]
    edges: tuple[Edge, ...]
    entry: int | None
    final: int | None
    out: tuple[tuple[Edge, ...], ...]
    into: tuple[tuple[Edge, ...], ...]
    reach: tuple[int, ...]  # reach[i]: steps reachable from i over at least one arc
    groups: tuple[tuple[int, ...], ...]  # strongly connected components, successors first

    def reaches(self, source: int, target: int) -> bool:
        return bool(self.reach[source] >> target & 1)

    def live(self) -> int:
        """Return the steps that a token can reach from a root, as a bit set."""
        steps = 0
        for root in self.roots():
            steps |= 1 << root | self.reach[root]
        return steps

    def roots(self) -> Iterator[int]:
        if self.entry is not None:
            yield self.entry
        if self.final is not None:
            yield self.final
        for step in self.steps:
            if step.compensate in self.index:
                yield self.index[step.compensate]

    def members(self, bits: int) -> Iterator[Step]:
        digits, number = bin(bits)[:1:-1], -1
        while (number := digits.find("1", number + 1)) >= 0:
            yield self.steps[number]

    def cycles(self) -> tuple[tuple[int, ...], ...]:
        """Return the groups of steps that can all reach each other, in file order."""
        return tuple(sorted(group for group in self.groups if self.reaches(group[0], group[0])))

    def cycle_of(self, name: str) -> tuple[str, ...]:
        """Return the shortest cycle through a step, itself first and last, or itself."""
        start = self.index[name]
        came_from: dict[int, int] = {}
        queue = [start]
        for number in queue:
            for edge in self.out[number]:
                if edge.target == start:
                    path = [start, number]
                    while path[-1] != start:
                        path.append(came_from[path[-1]])
                    return tuple(self.steps[member].name for member in reversed(path))
                if edge.target not in came_from:
                    came_from[edge.target] = number
                    queue.append(edge.target)
        return (name,)


def build(playbook: Playbook) -> Net:
    """Build the net of a playbook; of two steps with one name, the first counts."""
    steps: list[Step] = []
    index: dict[str, int] = {}
    for step in playbook.workflow:
        if step.name not in index:
            index[step.name] = len(steps)
            steps.append(step)
    final = index.get(str(playbook.executor.setting("final_step")))
    edges = tuple(
        Edge(index[step.name], index[arc.step], arc) for step in steps for arc in step.arcs if arc.step in index
    )
    out: list[list[Edge]] = [[] for _ in steps]
    into: list[list[Edge]] = [[] for _ in steps]
    for edge in edges:
        out[edge.source].append(edge)
        into[edge.target].append(edge)
    entry = index.get(playbook.entry) if playbook.entry else None
    followers = [[edge.target for edge in edges] for edges in out]
    groups, reach = closure(followers)
    return Net(tuple(steps), index, edges, entry, final, tuple(map(tuple, out)), tuple(map(tuple, into)), reach, groups)


def closure(followers: list[list[int]]) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Return the strongly connected components, and what each number reaches."""
    groups = _groups(followers)
    return groups, _reach(followers, groups)


def _groups(followers: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    """Find strongly connected components (Tarjan) with an explicit stack."""
    order = [0] * len(followers)  # discovery order, from 1; 0: not visited
    low = [0] * len(followers)
    pending: list[int] = []
    is_pending = [False] * len(followers)
    components: list[tuple[int, ...]] = []
    clock = 0
    for start in range(len(followers)):
        path = [] if order[start] else [(start, iter(followers[start]))]
        while path:
            number, rest = path[-1]
            if not order[number]:
                clock += 1
                order[number] = low[number] = clock
                pending.append(number)
                is_pending[number] = True
            for follower in rest:
                if not order[follower]:
                    path.append((follower, iter(followers[follower])))
                    break
                if is_pending[follower]:
                    low[number] = min(low[number], order[follower])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[number])
                if low[number] == order[number]:
                    group = [pending.pop()]
                    while group[-1] != number:
                        group.append(pending.pop())
                    for member in group:
                        is_pending[member] = False
                    components.append(tuple(sorted(group)))
    return tuple(components)


def _reach(followers: list[list[int]], groups: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the transitive closure of the edges; `groups` list successors first."""
    reach = [0] * len(followers)
    for group in groups:
        steps = 0
        for number in group:
            for follower in followers[number]:
                steps |= 1 << follower | reach[follower]
        for number in group:
            reach[number] = steps
    return tuple(reach)
