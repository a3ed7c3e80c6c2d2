"""Draw the links of an SVG drawing. Tested in tests/unit/dsl/draw/test_svg.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

from noetl.dsl.draw.layout.plan import BADGE, LINE_HEIGHT, LOOP_BULGE, LOOP_RISE, Passage, Plan, numbered, room
from noetl.dsl.draw.model.picture import Link, Picture

_ARROW = 7.0


def clean(text: str) -> str:
    """Escape a text for XML content and attributes."""
    kept = "".join(char if char == "\n" or char.isprintable() else " " for char in text)
    return escape(kept, {'"': "&quot;"})


def look(picture: Picture, number: int) -> str:
    """Return the name of a link's style."""
    link = picture.links[number]
    if link.kind == "compensate":
        return "undo"
    if link.outcome == "failure":
        return "fail"
    return "back" if number in picture.ordered.back else "line"


def draw_link(plan: Plan, number: int) -> Iterator[str]:
    """Draw the line of a link, up to the rail that it shares with others."""
    link = plan.picture.links[number]
    yield f'<g class="way"><title>{clean(_title(plan.picture, link))}</title>'
    if number not in plan.layers.chains:
        yield from _draw_loop(plan, number)
    else:
        own, rail = _parts(plan, number)
        yield _path(plan, number, own) + ("" if rail else _head(plan, number))
    yield "</g>"


def draw_rails(plan: Plan) -> Iterator[str]:
    """Draw each rail, the line that several links to one step share, once."""
    longest: dict[int, int] = {}
    for number, chain in plan.layers.chains.items():
        if len(chain.cells) > 3:
            near = chain.cells[1] if number in plan.picture.ordered.back else chain.cells[-2]
            before = longest.setdefault(near, number)
            if len(plan.layers.chains[before].cells) < len(chain.cells):
                longest[near] = number
    for number in longest.values():
        target = plan.picture.vertices[plan.picture.links[number].target].name
        _, rail = _parts(plan, number)
        yield f'<g class="rail"><title>to {clean(target)}</title>{_path(plan, number, rail)}{_head(plan, number)}</g>'


def _parts(plan: Plan, number: int) -> tuple[list[Passage], list[Passage]]:
    chain = plan.layers.chains[number]
    points = _passages(plan, number)
    if len(chain.cells) == 3:
        return [point for point in points if point], []
    if number in plan.picture.ordered.back:
        own, rail = points[-3:], points[:-2]
    else:
        meet = points[2]
        own, rail = [*points[:2], meet and (meet[0], meet[0])], [meet and (meet[0], meet[0]), *points[2:]]
    return [point for point in own if point], [point for point in rail if point]


def _draw_loop(plan: Plan, number: int) -> Iterator[str]:
    box = plan.picture.links[number].source
    right = plan.x[box] + plan.boxes[box].width / 2
    middle = (plan.top(box) + plan.bottom(box)) / 2
    far = right + LOOP_BULGE
    bend = f"C{far:.1f} {middle - 22:.1f} {far:.1f} {middle + 22:.1f} {right + _ARROW:.1f} {middle + LOOP_RISE:.1f}"
    name = look(plan.picture, number)
    yield f'<path class="{_classes(plan, number)}" d="M{right:.1f} {middle - LOOP_RISE:.1f}{bend}"/>'
    yield f'<path class="head-{name}" d="M{right:.1f} {middle + LOOP_RISE:.1f}l7 -5.5l2.4 7.6z"/>'


def _classes(plan: Plan, number: int) -> str:
    name = look(plan.picture, number)
    return f"link {name} back" if number in plan.picture.ordered.back and name != "back" else f"link {name}"


def _path(plan: Plan, number: int, points: Sequence[Passage]) -> str:
    return f'<path class="{_classes(plan, number)}" d="{_curve(points)}"/>'


def _head(plan: Plan, number: int) -> str:
    upper, lower = plan.ends(number)
    tip, away = (upper, _ARROW) if number in plan.picture.ordered.back else (lower, -_ARROW)
    name = look(plan.picture, number)
    return f'<path class="head-{name}" d="M{tip[0]:.1f} {tip[1]:.1f}l-4 {away * 1.15:.1f}h8z"/>'


def _passages(plan: Plan, number: int) -> list[Passage | None]:
    """Return the way of a link's line, with room for its arrow head."""
    (start, end), passed = plan.ends(number), plan.passages(number)[1:-1]
    if number in plan.picture.ordered.back:
        start = (start[0], start[1] + _ARROW)
    else:
        end = (end[0], end[1] - _ARROW)
    return [(start, start), *passed, (end, end)]


def _curve(points: Sequence[Passage]) -> str:
    parts = [f"M{points[0][1][0]:.1f} {points[0][1][1]:.1f}"]
    for (_, leave), (enter, out) in pairwise(points):
        middle = (leave[1] + enter[1]) / 2
        if leave == enter:
            pass
        elif abs(leave[0] - enter[0]) < 0.5:
            parts.append(f"L{enter[0]:.1f} {enter[1]:.1f}")
        else:
            parts.append(f"C{leave[0]:.1f} {middle:.1f} {enter[0]:.1f} {middle:.1f} {enter[0]:.1f} {enter[1]:.1f}")
        if out != enter:
            parts.append(f"V{out[1]:.1f}")
    return "".join(parts)


def draw_label(plan: Plan, number: int) -> Iterator[str]:
    """Draw the label of a link on a background that hides the line behind it."""
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
        left = plan.x[link.source] + plan.boxes[link.source].width / 2 + LOOP_BULGE
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
