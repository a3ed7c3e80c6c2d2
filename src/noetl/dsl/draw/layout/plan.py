"""Coordinates of an SVG drawing. Tested in tests/unit/dsl/draw/test_layout.py."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from noetl.dsl.draw.layout.boxes import SAID_SIZE, Box, box_of, wide
from noetl.dsl.draw.layout.coordinates import Extent, isotonic, place
from noetl.dsl.draw.layout.layers import Layers, lay_out
from noetl.dsl.draw.model.captions import wrapped
from noetl.dsl.draw.model.picture import Picture

MARGIN = 28.0
LINE_HEIGHT = 14.0  # of one line of a label
BADGE = 18.0  # space of the number before a label
_GAP = 26.0
_LINE = 7.0  # half the space of a line that passes a row
_LOOP = 34.0  # space of a line back to its own box
_NEAREST, _FARTHEST = 20.0, 64.0
_APART = 26.0  # distance of lines that meet one box
_SPREAD = 0.62  # the part of a box's width from which its links leave
LOOP_BULGE, LOOP_RISE = 30.0, 9.0  # how far a line back to its own box leaves it, and half the distance of its ends

Point = tuple[float, float]
Passage = tuple[Point, Point]  # where a line enters and leaves a row


class Plan(Struct, frozen=True, dict=True):
    """Coordinates of all parts; the first cells are the boxes."""

    picture: Picture
    layers: Layers
    boxes: tuple[Box, ...]
    labels: tuple[tuple[str, ...], ...]  # the lines of each link's label
    x: tuple[float, ...]  # of each cell's axis
    tops: tuple[float, ...]  # of each row
    heights: tuple[float, ...]
    width: float
    height: float

    def top(self, box: int) -> float:
        row = self.layers.row[box]
        return self.tops[row] + (self.heights[row] - self.boxes[box].height) / 2

    def bottom(self, box: int) -> float:
        return self.top(box) + self.boxes[box].height

    @cached_property
    def ports(self) -> dict[tuple[int, int], float]:
        """The x coordinate where the line between a box and a cell meets the box."""
        beside: dict[tuple[int, bool], set[int]] = {}
        for upper, lower in self.layers.links:
            if upper < len(self.boxes):
                beside.setdefault((upper, True), set()).add(lower)
            if lower < len(self.boxes):
                beside.setdefault((lower, False), set()).add(upper)
        ports: dict[tuple[int, int], float] = {}
        for (box, _), cells in beside.items():
            ordered = sorted(cells, key=lambda cell: (self.x[cell], cell))
            places = _side_by_side([self.x[cell] - self.x[box] for cell in ordered], self.boxes[box].width * _SPREAD)
            ports.update({(box, cell): self.x[box] + at for cell, at in zip(ordered, places, strict=True)})
        return ports

    def ends(self, number: int) -> tuple[Point, Point]:
        """Return the upper and the lower end of a link's line, both on boxes."""
        cells = self.layers.chains[number].cells
        upper, lower = cells[0], cells[-1]
        return (self.ports[upper, cells[1]], self.bottom(upper)), (self.ports[lower, cells[-2]], self.top(lower))

    def passages(self, number: int) -> list[Passage | None]:
        """Return the way of a link's line, downwards; None for a row without height."""
        chain = self.layers.chains[number]
        start, end = self.ends(number)
        points: list[Passage | None] = [(start, start)]
        for cell in chain.cells[1:-1]:
            top, height = self.tops[self.layers.row[cell]], self.heights[self.layers.row[cell]]
            written = cell != chain.label or height  # in a row without labels, a line is free
            points.append(((self.x[cell], top), (self.x[cell], top + height)) if written else None)
        return [*points, (end, end)]


def _side_by_side(wishes: Sequence[float], room: float) -> list[float]:
    if len(wishes) == 1:
        return [wishes[0] if abs(wishes[0]) <= room / 2 else 0.0]
    apart = min(_APART, room / (len(wishes) - 1))
    bounded = [min(max(wish, -room / 2), room / 2) for wish in wishes]
    levels = isotonic([(wish - number * apart, 1.0) for number, wish in enumerate(bounded)])
    last = room / 2 - (len(wishes) - 1) * apart
    return [min(max(value, -room / 2), last) + number * apart for number, value in enumerate(levels)]


def numbered(picture: Picture, number: int) -> int | None:
    """Return the number of an arc where the order of arcs matters, else None."""
    link = picture.links[number]
    if link.kind != "arc" or not picture.has_order(link.source):
        return None
    return picture.out[link.source].index(number) + 1


def words(picture: Picture, number: int) -> tuple[str, ...]:
    """Return the lines of a link's label."""
    text = picture.links[number].said
    return wrapped(text) if text else ("on success",) if numbered(picture, number) else ()


def room(picture: Picture, number: int, label: Sequence[str]) -> float:
    """Return the width of a link's label."""
    return max((wide(line, SAID_SIZE) for line in label), default=0.0) + (BADGE if numbered(picture, number) else 0.0)


def make_plan(
    picture: Picture,
    above: float = 0.0,
    boxes: tuple[Box, ...] | None = None,
    labels: tuple[tuple[str, ...], ...] | None = None,
) -> Plan:
    """Lay out a drawing with `above` units left free for a heading.

    Boxes are measured by their text, and labels are the conditions of arcs, unless they are given.
    """
    if boxes is None:
        boxes = tuple(box_of(vertex, number == picture.final) for number, vertex in enumerate(picture.vertices))
    if labels is None:
        labels = tuple(words(picture, number) for number in range(len(picture.links)))
    pairs = [(link.source, link.target) for link in picture.links]
    # Success arcs are the spine of the drawing; failures, compensations and back links give way to them.
    weights = [
        0.05 if link.outcome == "failure" or number in picture.ordered.back else 1.0
        for number, link in enumerate(picture.links)
    ]
    bundle = [(link.kind, link.outcome == "failure") for link in picture.links]
    layers = lay_out(picture.ordered, pairs, bundle, weights)
    extents = _extents(picture, layers, boxes, labels)
    x = [MARGIN + value for value in place(layers, extents, _GAP)]
    tops, heights = _rows(layers, boxes, labels, x, above)
    width = max((x[cell] + extents[cell].right for cell in range(len(x))), default=0.0) + MARGIN
    height = (tops[-1] + heights[-1] if tops else above) + MARGIN
    return Plan(picture, layers, boxes, labels, tuple(x), tuple(tops), tuple(heights), width, height)


def _extents(picture: Picture, layers: Layers, boxes: Sequence[Box], labels: Sequence[Sequence[str]]) -> list[Extent]:
    extents = [Extent(_LINE, _LINE)] * len(layers.row)
    for number, box in enumerate(boxes):
        extents[number] = Extent(box.width / 2, box.width / 2)
    for number, label in enumerate(labels):
        width = room(picture, number, label) if label else 0.0
        link = picture.links[number]
        if number in layers.chains:
            half = max(_LINE, width / 2)
            extents[layers.chains[number].label] = Extent(half, half)
        else:
            half = boxes[link.source].width / 2
            extents[link.source] = Extent(half, max(extents[link.source].right, half + _LOOP + width))
    return extents


def _rows(
    layers: Layers, boxes: Sequence[Box], labels: Sequence[Sequence[str]], x: Sequence[float], above: float
) -> tuple[list[float], list[float]]:
    heights = [0.0] * len(layers.rows)
    for number, box in enumerate(boxes):
        heights[layers.row[number]] = max(heights[layers.row[number]], box.height)
    for number, chain in layers.chains.items():
        if labels[number]:
            row = layers.row[chain.label]
            heights[row] = max(heights[row], LINE_HEIGHT * len(labels[number]) + 4)
    reach = [0.0] * len(layers.rows)
    for upper, lower in layers.links:
        row = layers.row[upper]
        reach[row] = max(reach[row], abs(x[upper] - x[lower]))
    tops: list[float] = []
    at = MARGIN + above
    for row, height in enumerate(heights):
        tops.append(at)
        at += height + min(_FARTHEST, _NEAREST + reach[row] * 0.07)
    return tops, heights
