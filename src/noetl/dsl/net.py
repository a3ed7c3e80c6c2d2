"""The Petri net of a playbook: steps as transitions, arcs between them, and what can reach what.

Reachability is one bit set per step, computed once. Arcs to steps that do not exist are left out: they are told as
diagnostics. Tested in tests/unit/dsl/test_net.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from noetl.dsl.playbook import Arc, Playbook, Step


class Edge(NamedTuple):
    """An arc between two steps that exist."""

    source: int
    target: int
    arc: Arc


@dataclass(frozen=True, slots=True)
class Net:
    """Steps by number, edges, and reachability as bit sets."""

    steps: tuple[Step, ...]
    index: dict[str, int]
    edges: tuple[Edge, ...]
    entry: int | None
    final: int | None
    out: tuple[tuple[Edge, ...], ...] = field(repr=False)
    into: tuple[tuple[Edge, ...], ...] = field(repr=False)
    reach: tuple[int, ...] = field(repr=False)  # reach[i]: steps at the end of some non-empty path from i

    def reaches(self, source: int, target: int) -> bool:
        return bool(self.reach[source] >> target & 1)

    def live(self) -> int:
        """Give the steps that some token can come to, as a bit set: from the entry, the final step, compensations."""
        found = 0
        for root in self.roots():
            found |= 1 << root | self.reach[root]
        return found

    def roots(self) -> Iterator[int]:
        if self.entry is not None:
            yield self.entry
        if self.final is not None:
            yield self.final
        for step in self.steps:
            if step.compensate in self.index:
                yield self.index[step.compensate]

    def members(self, bits: int) -> Iterator[Step]:
        return (step for number, step in enumerate(self.steps) if bits >> number & 1)

    def cycles(self) -> tuple[tuple[int, ...], ...]:
        """Give the groups of steps that can all reach each other, in file order."""
        seen = 0
        groups: list[tuple[int, ...]] = []
        for number in range(len(self.steps)):
            if seen >> number & 1 or not self.reaches(number, number):
                continue
            group = tuple(
                other
                for other in range(number, len(self.steps))
                if self.reaches(number, other) and self.reaches(other, number)
            )
            for other in group:
                seen |= 1 << other
            groups.append(group)
        return tuple(groups)


def build(playbook: Playbook) -> Net:
    """Make the net of a playbook; of two steps with one name, the first counts."""
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
    return Net(tuple(steps), index, edges, entry, final, tuple(map(tuple, out)), tuple(map(tuple, into)), _reach(out))


def _reach(out: Iterable[Iterable[Edge]]) -> tuple[int, ...]:
    """Close the direct edges under following; a work list that revisits only what grew."""
    direct = [0] * len(list(out))
    into: list[list[int]] = [[] for _ in direct]
    for number, edges in enumerate(out):
        for edge in edges:
            direct[number] |= 1 << edge.target
            into[edge.target].append(number)
    reach = list(direct)
    pending = list(range(len(reach) - 1, -1, -1))
    waiting = set(pending)
    while pending:
        number = pending.pop()
        waiting.discard(number)
        for before in into[number]:
            grown = reach[before] | reach[number]
            if grown != reach[before]:
                reach[before] = grown
                if before not in waiting:
                    waiting.add(before)
                    pending.append(before)
    return tuple(reach)
