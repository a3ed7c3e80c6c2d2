"""Lay a drawing out in rows: boxes on even rows, labels on odd rows.

A link across several rows has a cell in each, so that nothing is drawn over a box or a label. Long links to one target share
their cells after the first row and run as one line. In a drawing with very many of them, the longest links have no cell but
that of their label, and cross what lies between: the work is bounded, whatever the playbook. Tested in tests/unit/dsl/draw/test_layout.py.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Sequence
from itertools import pairwise

from msgspec import Struct

from noetl.dsl.draw.model.ranks import Ordered, Pair

_SWEEPS = 24
_WORK = 40_000  # cells times sweeps: a very large drawing gets fewer sweeps, not more time
_MOST_CELLS = 10_000  # that long links share, beside those of boxes and labels
_MOST_PASSED = 100_000  # cells that links pass, counted once for each link


class Chain(Struct, frozen=True):
    """The cells of one link, from top to bottom; `label` is the cell of its label."""

    cells: tuple[int, ...]
    label: int


class Layers(Struct, frozen=True):
    """Ordered rows of cells; the first cells are the boxes, by their numbers."""

    rows: tuple[tuple[int, ...], ...]
    row: tuple[int, ...]
    chains: dict[int, Chain]  # by link; links from a box to itself have none
    links: dict[Pair, float]  # between cells of adjacent rows, with the weight of keeping each straight


def lay_out(
    ordered: Ordered, links: Sequence[Pair], bundle: Sequence[Hashable], weights: Sequence[float] = ()
) -> Layers:
    """Lay out boxes and links; links of one target and `bundle` share cells."""
    row = [2 * level for level in ordered.level]
    cells: dict[Hashable, int] = {}

    def cell(key: Hashable, at: int) -> int:
        if key not in cells:
            cells[key] = len(row)
            row.append(at)
        return cells[key]

    chains: dict[int, Chain] = {}
    longest = _longest(row, links, bundle)
    for number, (source, target) in enumerate(links):
        if source == target:
            continue
        back = number in ordered.back
        upper, lower = (target, source) if back else (source, target)
        own = row[lower] - 1 if back else row[upper] + 1
        is_direct = row[lower] - row[upper] > longest
        rows_between = (own,) if is_direct else range(row[upper] + 1, row[lower])
        passed = [
            cell(("label", number) if at == own else ("shared", target, back, bundle[number], at), at)
            for at in rows_between
        ]
        chains[number] = Chain((upper, *passed, lower), cells["label", number])
    pairs: dict[Pair, float] = {}
    for number, chain in chains.items():
        for pair in pairwise(chain.cells):
            pairs[pair] = max(pairs.get(pair, 0.0), weights[number] if weights else 1.0)
    rows = _first_rows(ordered, row, chains)
    adjacent = [(upper, lower) for upper, lower in pairs if row[lower] - row[upper] == 1]
    return Layers(_uncrossed(rows, adjacent), tuple(row), chains, pairs)


def _longest(row: Sequence[int], links: Sequence[Pair], bundle: Sequence[Hashable]) -> int:
    """Return how many rows a link may span with a cell in each; short links first."""
    longest, passed, cells = 2, 0, 0
    reach: dict[Hashable, int] = {}
    for span, number in sorted(
        (abs(row[target] - row[source]), number) for number, (source, target) in enumerate(links)
    ):
        source, target = links[number]
        rail = (target, row[source] > row[target], bundle[number])
        passed += span
        cells += max(0, span - reach.get(rail, 2))
        reach[rail] = max(2, span)
        if passed > _MOST_PASSED or cells > _MOST_CELLS:
            return max(2, min(longest, span - 1))
        longest = max(longest, span)
    return longest


def _first_rows(ordered: Ordered, row: list[int], chains: dict[int, Chain]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(max(row, default=-1) + 1)]
    met: dict[int, list[int]] = {box: [box] for box in ordered.reading}
    for chain in chains.values():
        met[chain.cells[0]].extend(chain.cells[1:-1])
    for cell in dict.fromkeys(cell for cells in met.values() for cell in cells):
        rows[row[cell]].append(cell)
    return rows


def _uncrossed(rows: list[list[int]], pairs: list[Pair]) -> tuple[tuple[int, ...], ...]:
    """Order rows by their neighbours, down and up in turn; keep the best order."""
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for upper, lower in pairs:
        above.setdefault(lower, []).append(upper)
        below.setdefault(upper, []).append(lower)
    size = max(1, sum(map(len, rows)))
    best = [list(row) for row in rows]
    fewest = _crossings(best, below)
    for sweep in range(min(_SWEEPS, max(2, _WORK // size))):
        if not fewest:
            break
        down = sweep % 2 == 0
        for number in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            fixed = rows[number - 1 if down else number + 1]
            _sort_by_neighbours(rows[number], fixed, above if down else below)
        _swap_neighbours(rows, above, below)
        count = _crossings(rows, below)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
    return tuple(map(tuple, best))


def _sort_by_neighbours(row: list[int], fixed: list[int], neighbours: dict[int, list[int]]) -> None:
    place = {cell: number for number, cell in enumerate(fixed)}
    own = {cell: number for number, cell in enumerate(row)}
    scale = len(fixed) / max(1, len(row))

    def wanted(cell: int) -> tuple[float, int]:
        near = [place[other] for other in neighbours.get(cell, ())]
        return (sum(near) / len(near) if near else own[cell] * scale, own[cell])

    row.sort(key=wanted)


def _swap_neighbours(rows: list[list[int]], above: dict[int, list[int]], below: dict[int, list[int]]) -> None:
    for number, row in enumerate(rows):
        up = {cell: place for place, cell in enumerate(rows[number - 1])} if number else {}
        down = {cell: place for place, cell in enumerate(rows[number + 1])} if number + 1 < len(rows) else {}
        for place in range(len(row) - 1):
            left, right = row[place], row[place + 1]
            now = turned = 0
            for neighbours, places in ((above, up), (below, down)):
                a = [places[cell] for cell in neighbours.get(left, ())]
                b = sorted(places[cell] for cell in neighbours.get(right, ()))
                now += sum(bisect_left(b, x) for x in a)
                turned += sum(len(b) - bisect_right(b, x) for x in a)
            if turned < now:
                row[place], row[place + 1] = right, left


def _crossings(rows: Sequence[Sequence[int]], below: dict[int, list[int]]) -> int:
    total = 0
    for number in range(len(rows) - 1):
        place = {cell: index for index, cell in enumerate(rows[number + 1])}
        passed: list[int] = []
        for cell in rows[number]:
            targets = [place[other] for other in below.get(cell, ())]
            total += sum(len(passed) - bisect_right(passed, target) for target in targets)
            for target in targets:
                insort(passed, target)
    return total
