"""Finds the steps where branches of one fork may meet, so that a picture can mark them as joins.

A step is marked where two of the links into it carry different branches of a fork. Alternatives inside one branch, and
everything behind a join, carry the same branches and are not marked. Tested in tests/unit/dsl/test_draw_picture.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from noetl.dsl.draw.order import Pair, in_order


def meeting_points(count: int, links: Sequence[Pair], forks: Iterable[int]) -> frozenset[int]:
    """Give the steps where branches meet; `forks` are the steps whose routers may take several arcs at once."""
    out: list[list[int]] = [[] for _ in range(count)]
    for number, (source, _) in enumerate(links):
        out[source].append(number)
    branching = [fork for fork in forks if len(out[fork]) > 1]
    if not branching:
        return frozenset()
    ordered = in_order(count, links)
    found: set[int] = set()
    for fork in branching:
        found |= _meet(fork, links, out, ordered.reading, ordered.back)
    return frozenset(found)


def _meet(
    fork: int, links: Sequence[Pair], out: list[list[int]], reading: tuple[int, ...], back: frozenset[int]
) -> set[int]:
    """Carry the branches of one fork, as bit sets, along the links that lead onwards."""
    carried: dict[int, int] = {}
    found: set[int] = set()

    def arrive(target: int, branches: int) -> None:
        here = carried.get(target, 0)
        if here and not here & branches:
            found.add(target)
        carried[target] = here | branches

    for step in reading[reading.index(fork) :]:
        for place, number in enumerate(out[step]):
            branches = 1 << place if step == fork else carried.get(step, 0)
            if branches and number not in back:
                arrive(links[number][1], branches)
    return found
