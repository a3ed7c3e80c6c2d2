"""The lines of SVG pictures: how a link runs from box to box, and what is written beside it.

Tested in tests/unit/dsl/test_draw_svg.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from noetl.dsl.draw.boxes import clean
from noetl.dsl.draw.picture import Link, Picture
from noetl.dsl.draw.plan import BADGE, LINE_HEIGHT, Plan, numbered, room

Point = tuple[float, float]
_ARROW = 7.0
_BULGE = 30.0


def look(picture: Picture, number: int) -> str:
    """Give the name of a link's looks."""
    link = picture.links[number]
    if link.kind == "compensate":
        return "undo"
    if link.outcome == "failure":
        return "fail"
    return "back" if number in picture.ordered.back else "line"


def draw_link(plan: Plan, number: int) -> Iterator[str]:
    """Draw the line of a link with its arrow head."""
    link = plan.picture.links[number]
    name = look(plan.picture, number)
    classes = f"link {name}" + (" back" if number in plan.picture.ordered.back else "")
    if number in plan.layers.chains:
        points, head = _chain(plan, number)
        path, arrow = _curve(points), head
    else:
        right = plan.x[link.source] + plan.boxes[link.source].width / 2
        middle = (plan.top(link.source) + plan.bottom(link.source)) / 2
        far = right + _BULGE
        path = f"M{right:.1f} {middle - 9:.1f}C{far:.1f} {middle - 22:.1f} {far:.1f} {middle + 22:.1f} {right + _ARROW:.1f} {middle + 9:.1f}"
        arrow = f"M{right:.1f} {middle + 9:.1f}l7 -5.5l2.4 7.6z"
    yield f"<g><title>{clean(_title(plan.picture, link))}</title>"
    yield f'<path class="{classes}" d="{path}"/><path class="head-{name}" d="{arrow}"/></g>'


def _chain(plan: Plan, number: int) -> tuple[list[tuple[Point, Point]], str]:
    """Give where the line enters and leaves each cell from the top down, and its arrow head."""
    cells = plan.layers.chains[number].cells
    upper, lower = cells[0], cells[-1]
    start = (plan.ports[upper, cells[1]], plan.bottom(upper))
    end = (plan.ports[lower, cells[-2]], plan.top(lower))
    points: list[tuple[Point, Point]] = []
    for cell in cells[1:-1]:
        if cell == plan.layers.chains[number].label and not plan.heights[plan.layers.row[cell]]:
            continue  # nobody writes in this row, so the line need not keep to its cell
        top = plan.tops[plan.layers.row[cell]]
        below = top + plan.heights[plan.layers.row[cell]]
        points.append(((plan.x[cell], top), (plan.x[cell], below)))
    if number in plan.picture.ordered.back:
        tip, away = start, _ARROW
        start = (start[0], start[1] + _ARROW)
    else:
        tip, away = end, -_ARROW
        end = (end[0], end[1] - _ARROW)
    head = f"M{tip[0]:.1f} {tip[1]:.1f}l-4 {away * 1.15:.1f}h8z"
    return [(start, start), *points, (end, end)], head


def _curve(points: Sequence[tuple[Point, Point]]) -> str:
    parts = [f"M{points[0][1][0]:.1f} {points[0][1][1]:.1f}"]
    for (_, leave), (enter, out) in pairwise(points):
        middle = (leave[1] + enter[1]) / 2
        if abs(leave[0] - enter[0]) < 0.5:
            parts.append(f"L{enter[0]:.1f} {enter[1]:.1f}")
        else:
            parts.append(f"C{leave[0]:.1f} {middle:.1f} {enter[0]:.1f} {middle:.1f} {enter[0]:.1f} {enter[1]:.1f}")
        if out != enter:
            parts.append(f"V{out[1]:.1f}")
    return "".join(parts)


def draw_label(plan: Plan, number: int) -> Iterator[str]:
    """Write what belongs beside a link, on a plate that hides the line behind it."""
    label = plan.labels[number]
    if not label:
        return
    link = plan.picture.links[number]
    width = room(plan.picture, number, label)
    if number in plan.layers.chains:
        cell = plan.layers.chains[number].label
        left = plan.x[cell] - width / 2
        middle = plan.tops[plan.layers.row[cell]] + plan.heights[plan.layers.row[cell]] / 2
    else:
        left = plan.x[link.source] + plan.boxes[link.source].width / 2 + _BULGE
        middle = (plan.top(link.source) + plan.bottom(link.source)) / 2
    height = LINE_HEIGHT * len(label) + 4
    yield (
        f'<rect class="paper" x="{left - 3:.1f}" y="{middle - height / 2:.1f}" width="{width + 6:.1f}" '
        f'height="{height:g}"/>'
    )
    place = numbered(plan.picture, number)
    if place:
        yield f'<circle class="pill" cx="{left + 7:.1f}" cy="{middle:.1f}" r="7"/>'
        yield f'<text class="said sans dim" x="{left + 7:.1f}" y="{middle + 3.7:.1f}" text-anchor="middle">{place}</text>'
        left += BADGE
    name = look(plan.picture, number)
    tone = "dim" if name == "line" else f"say-{name}"
    first = middle - (len(label) - 1) * LINE_HEIGHT / 2 + 3.7
    for row, line in enumerate(label):
        yield f'<text class="said {tone}" x="{left:.1f}" y="{first + row * LINE_HEIGHT:.1f}">{clean(line)}</text>'


def _title(picture: Picture, link: Link) -> str:
    source, target = picture.vertices[link.source].name, picture.vertices[link.target].name
    if link.kind == "compensate":
        return f"{target} undoes {source} when the run fails and rolls back"
    lines = [f"{source} → {target}"]
    lines += [f"label {link.label}"] if link.label else []
    lines += [f"when {link.when}"] if link.when else []
    lines += [f"args {', '.join(link.args)}"] if link.args else []
    lines += [f"set {', '.join(link.sets)}"] if link.sets else []
    return "\n".join(lines)
