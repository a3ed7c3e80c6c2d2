"""Rank the steps of a drawing: levels, back links, reading order and joins.

Every forward link points down. Tested in tests/unit/dsl/draw/test_ranks.py and test_draw_picture.py.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

Pair = tuple[int, int]
_MOST_MET = 400_000  # links that branches are followed along


class Ordered(Struct, frozen=True):
    """Steps by level and in reading order; `back` holds links that lead back."""

    levels: tuple[tuple[int, ...], ...]
    level: tuple[int, ...]
    back: frozenset[int]
    reading: tuple[int, ...]


def in_order(count: int, links: Sequence[Pair], first: int | None = None, last: int | None = None) -> Ordered:
    """Rank `count` steps.

    A depth-first walk from `first`, then in number order, decides where cycles are cut. `last` is placed below all other
    steps unless a link leads to it.
    """
    out: list[list[int]] = [[] for _ in range(count)]
    for number, (source, _) in enumerate(links):
        out[source].append(number)
    sources = _sources(count, links)
    roots = [*([] if first is None else [first]), *sources, *range(count)]
    back = _back_links(count, links, out, roots)
    reading = _reading(count, links, out, back)
    level = _levels(count, links, out, back, reading)
    for number in sources:
        below = [level[links[link][1]] for link in out[number] if link not in back]
        if below and number != first:
            level[number] = min(below) - 1
    if last is not None and last != first and last in sources and not out[last]:
        level[last] = max((level[number] for number in range(count) if number != last), default=-1) + 1
    rows: list[list[int]] = [[] for _ in range(max(level, default=-1) + 1)]
    for number in reading:
        rows[level[number]].append(number)
    return Ordered(tuple(map(tuple, rows)), tuple(level), frozenset(back), tuple(reading))


def _sources(count: int, links: Sequence[Pair]) -> list[int]:
    targets = {target for _, target in links}
    return [number for number in range(count) if number not in targets]


def _back_links(count: int, links: Sequence[Pair], out: list[list[int]], roots: Iterable[int]) -> set[int]:
    fresh, open_, closed = 0, 1, 2
    state = [fresh] * count
    back: set[int] = set()
    for root in roots:
        if state[root] != fresh:
            continue
        state[root] = open_
        stack = [(root, iter(out[root]))]
        while stack:
            here, rest = stack[-1]
            for number in rest:
                target = links[number][1]
                if state[target] == open_:
                    back.add(number)
                elif state[target] == fresh:
                    state[target] = open_
                    stack.append((target, iter(out[target])))
                    break
            else:
                state[here] = closed
                stack.pop()
    return back


def _reading(count: int, links: Sequence[Pair], out: list[list[int]], back: set[int]) -> list[int]:
    waiting = [0] * count
    for number, (_, target) in enumerate(links):
        waiting[target] += number not in back
    ready = [number for number in range(count) if not waiting[number]]
    order: list[int] = []
    while ready:
        here = heapq.heappop(ready)
        order.append(here)
        for number in out[here]:
            if number not in back:
                target = links[number][1]
                waiting[target] -= 1
                if not waiting[target]:
                    heapq.heappush(ready, target)
    return order


def _levels(count: int, links: Sequence[Pair], out: list[list[int]], back: set[int], reading: list[int]) -> list[int]:
    level = [0] * count
    for here in reading:
        for number in out[here]:
            if number not in back:
                target = links[number][1]
                level[target] = max(level[target], level[here] + 1)
    return level


def meeting_points(count: int, links: Sequence[Pair], forks: Iterable[int]) -> frozenset[int]:
    """Return the steps where branches of `forks`, inclusive routers, meet.

    Two links into such a step carry different branches of a fork. Alternatives inside one branch, and everything after a
    join, carry the same branches. In a net that takes too long, the forks after the first ones are left out.
    """
    out: list[list[int]] = [[] for _ in range(count)]
    for number, (source, _) in enumerate(links):
        out[source].append(number)
    branching = [fork for fork in forks if len(out[fork]) > 1]
    if not branching:
        return frozenset()
    ordered = in_order(count, links)
    at = {step: number for number, step in enumerate(ordered.reading)}
    meeting: set[int] = set()
    budget = _MOST_MET
    for fork in branching:
        budget = _meet(fork, links, out, at, ordered.back, meeting, budget)
    return frozenset(meeting)


def _meet(
    fork: int,
    links: Sequence[Pair],
    out: list[list[int]],
    at: Mapping[int, int],
    back: frozenset[int],
    meeting: set[int],
    budget: int,
) -> int:
    """Propagate the branches of one fork, as bit sets, along the forward links.

    Ends where all steps that are still to be visited share a branch: no others meet below them. Returns what is left of the
    budget.
    """
    carried: dict[int, int] = {}
    waiting: list[tuple[int, int]] = []

    def arrive(target: int, branches: int) -> None:
        here = carried.get(target, 0)
        if not here:
            heapq.heappush(waiting, (at[target], target))
        elif not here & branches:
            meeting.add(target)
        carried[target] = here | branches

    for place, number in enumerate(out[fork]):
        if number not in back:
            arrive(links[number][1], 1 << place)
    while waiting and budget > 0:
        shared = -1
        for seen, (_, step) in enumerate(waiting):
            shared &= carried[step]
            if not shared:
                budget -= seen
                break
        else:
            break
        _, step = heapq.heappop(waiting)
        budget -= 1 + len(out[step])
        for number in out[step]:
            if number not in back:
                arrive(links[number][1], carried[step])
    return budget
