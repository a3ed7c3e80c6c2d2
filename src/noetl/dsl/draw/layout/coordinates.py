"""Compute the x coordinates of cells, close to their neighbours.

One row is placed by isotonic regression: of all positions that keep order and distances, the least squares distance to the
wanted positions wins. Tested in tests/unit/dsl/draw/test_layout.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from noetl.dsl.draw.layout.layers import Layers

_ROUNDS = 30
_WORK = 60_000  # cells times rounds


class Extent(Struct, frozen=True):
    """The space that a cell needs to the left and right of its axis."""

    left: float
    right: float


def place(layers: Layers, extents: Sequence[Extent], gap: float) -> list[float]:
    """Return the x coordinate of every cell's axis; the leftmost cell begins at 0."""
    above: dict[int, list[tuple[int, float]]] = {}
    below: dict[int, list[tuple[int, float]]] = {}
    inner = {cell for chain in layers.chains.values() for cell in chain.cells[1:-1]}
    for (upper, lower), weight in layers.links.items():
        # The middle of a long line pulls hardest, because a bend there is the most visible.
        pull = weight * (8.0 if upper in inner and lower in inner else 2.0)
        above.setdefault(lower, []).append((upper, pull))
        below.setdefault(upper, []).append((lower, pull))
    x = _packed(layers, extents, gap)
    for round_ in range(min(_ROUNDS, max(4, _WORK // max(1, len(extents))))):
        down = round_ % 2 == 0
        rows = layers.rows if down else layers.rows[::-1]
        for row in rows:
            _place_row(row, x, extents, gap, above if down else below, below if down else above)
    _straighten(layers, x, extents, gap)
    least = min((x[cell] - extents[cell].left for cell in range(len(extents))), default=0.0)
    return [value - least for value in x]


def _packed(layers: Layers, extents: Sequence[Extent], gap: float) -> list[float]:
    x = [0.0] * len(extents)
    for row in layers.rows:
        total = sum(extents[cell].left + extents[cell].right + gap for cell in row) - gap
        at = -total / 2
        for cell in row:
            x[cell] = at + extents[cell].left
            at += extents[cell].left + extents[cell].right + gap
    return x


def _place_row(
    row: Sequence[int],
    x: list[float],
    extents: Sequence[Extent],
    gap: float,
    before: dict[int, list[tuple[int, float]]],
    after: dict[int, list[tuple[int, float]]],
) -> None:
    offsets: list[float] = []
    at = 0.0
    for number, cell in enumerate(row):
        if number:
            at += extents[row[number - 1]].right + gap + extents[cell].left
        offsets.append(at)
    wishes: list[tuple[float, float]] = []
    for cell, offset in zip(row, offsets, strict=True):
        pulls = [(x[other], weight) for other, weight in before.get(cell, ())]
        pulls += [(x[other], weight / 2) for other, weight in after.get(cell, ())]
        weight = sum(pull for _, pull in pulls)
        wish = sum(where * pull for where, pull in pulls) / weight if weight else x[cell]
        wishes.append((wish - offset, weight or 0.01))
    for cell, offset, position in zip(row, offsets, isotonic(wishes), strict=True):
        x[cell] = position + offset


def _straighten(layers: Layers, x: list[float], extents: Sequence[Extent], gap: float) -> None:
    place_of = {cell: (row, number) for row in layers.rows for number, cell in enumerate(row)}

    def room(cell: int) -> tuple[float, float]:
        row, number = place_of[cell]
        left = right = None
        if number:
            before = row[number - 1]
            left = x[before] + extents[before].right + gap + extents[cell].left
        if number + 1 < len(row):
            after = row[number + 1]
            right = x[after] - extents[after].left - gap - extents[cell].right
        return (float("-inf") if left is None else left, float("inf") if right is None else right)

    for run in _runs(layers):
        start = 0
        while start < len(run):
            low, high = room(run[start])
            end = start + 1
            while end < len(run):
                lower, higher = room(run[end])
                if max(low, lower) > min(high, higher):
                    break
                low, high = max(low, lower), min(high, higher)
                end += 1
            part = run[start:end]
            wish = sorted(x[cell] for cell in part)[len(part) // 2]
            for cell in part:
                x[cell] = min(max(wish, low), high)
            start = end


def _runs(layers: Layers) -> list[list[int]]:
    """Return the inner cells of each line without label cells, every cell once."""
    labels = {chain.label for chain in layers.chains.values()}
    runs: list[list[int]] = []
    seen: set[int] = set()
    for chain in sorted(layers.chains.values(), key=lambda chain: -len(chain.cells)):
        run = [cell for cell in chain.cells[1:-1] if cell not in labels and cell not in seen]
        seen.update(run)
        if len(run) > 1:
            runs.append(run)
    return runs


def isotonic(wishes: Sequence[tuple[float, float]]) -> list[float]:
    """Return the isotonic regression: the rising values closest to the wishes."""
    blocks: list[tuple[float, float, int]] = []
    for wish, weight in wishes:
        value, total, size = wish, weight, 1
        while blocks and blocks[-1][0] > value:
            left, mass, count = blocks.pop()
            value = (left * mass + value * total) / (mass + total)
            total, size = total + mass, size + count
        blocks.append((value, total, size))
    return [value for value, _, size in blocks for _ in range(size)]
