"""Puts the steps of a picture in order: levels from the top down, the links that lead back, and an order to read in.

Works on numbers only. Levels are longest paths over the links that do not lead back, so every other link goes downwards.
Tested in tests/unit/dsl/test_draw_order.py.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from msgspec import Struct

Pair = tuple[int, int]


class Ordered(Struct, frozen=True):
    """`back` holds the numbers of the links that lead back or to the same step."""

    levels: tuple[tuple[int, ...], ...]
    level: tuple[int, ...]
    back: frozenset[int]
    reading: tuple[int, ...]


def in_order(count: int, links: Sequence[Pair], first: int | None = None, last: int | None = None) -> Ordered:
    """Order `count` steps.

    Where a cycle is cut is decided by walking from `first`, then in number order. `last` stands below everything unless
    a link leads to it.
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
    """Walk depth first with a stack of our own: a workflow may be deeper than Python likes to recurse."""
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
    """Give an order in which every forward link leads onwards, and which stays as close to the file as that allows."""
    waiting = [0] * count
    for number, (_, target) in enumerate(links):
        waiting[target] += number not in back
    ready = [number for number in range(count) if not waiting[number]]
    found: list[int] = []
    while ready:
        here = heapq.heappop(ready)
        found.append(here)
        for number in out[here]:
            if number not in back:
                target = links[number][1]
                waiting[target] -= 1
                if not waiting[target]:
                    heapq.heappush(ready, target)
    return found


def _levels(count: int, links: Sequence[Pair], out: list[list[int]], back: set[int], reading: list[int]) -> list[int]:
    level = [0] * count
    for here in reading:
        for number in out[here]:
            if number not in back:
                target = links[number][1]
                level[target] = max(level[target], level[here] + 1)
    return level
