"""Draw a playbook as a self-contained SVG file with tooltips.

The output is deterministic. Tested in tests/unit/dsl/draw/test_svg.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.draw.layout.boxes import PILL_GAP, PILL_HEIGHT, SANS_EM, SMALL_SIZE, Box, Pill, wide
from noetl.dsl.draw.layout.plan import MARGIN, Plan, make_plan, numbered
from noetl.dsl.draw.model.captions import counted
from noetl.dsl.draw.model.picture import Picture
from noetl.dsl.draw.render.svg_edges import clean, draw_label, draw_link, draw_rails, look
from noetl.dsl.draw.render.svg_theme import FAMILY, ICONS, style

_HEADING = 70.0
_LEGEND_ROW = 20.0


def draw_svg(picture: Picture) -> str:
    """Return a drawing as the text of an SVG file."""
    plan = make_plan(picture, above=_HEADING)
    legend = list(_legend(plan))
    width = max(
        plan.width, MARGIN * 2 + wide(picture.heading, 15.0), *(MARGIN * 2 + 40 + item[1] for item in legend), 240
    )
    height = plan.height + len(legend) * _LEGEND_ROW
    shift = (width - plan.width) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {_size(width, height)} role="img">',
        f"<title>{clean(picture.heading or 'playbook')}</title>",
        f"<desc>{clean(_summary(picture))}</desc>",
        f"<style>{style()}</style>",
        f'<rect class="paper" width="{width:.1f}" height="{height:.1f}" rx="12"/>',
        f'<text class="head" x="{MARGIN:g}" y="{MARGIN + 8:g}">{clean(picture.name or "playbook")}</text>',
        f'<text class="small sans dim" x="{MARGIN:g}" y="{MARGIN + 25:g}">{clean(_summary(picture))}</text>',
        f'<g transform="translate({shift:.1f} 0)">',
        *_drawing(plan),
        "</g>",
        *_draw_legend(legend, plan.height),
        "</svg>",
        "",
    ]
    return "\n".join(parts)


def _size(width: float, height: float) -> str:
    return f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.1f} {height:.1f}"'


def _summary(picture: Picture) -> str:
    steps = sum(vertex.known for vertex in picture.vertices)
    arcs = sum(link.kind == "arc" for link in picture.links)
    return " · ".join(filter(None, [picture.path, f"{counted(steps, 'step')}, {counted(arcs, 'arc')}"]))


def _drawing(plan: Plan) -> Iterator[str]:
    for number in range(len(plan.picture.links)):
        yield from draw_link(plan, number)
    yield from draw_rails(plan)
    for number, box in enumerate(plan.boxes):
        yield from _draw_box(plan.picture, number, box, plan.x[number], plan.top(number))
        if plan.picture.vertices[number].mode == "inclusive" and len(plan.picture.out[number]) > 1:
            half = box.width * 0.34
            yield (
                f'<rect class="bar" x="{plan.x[number] - half:.1f}" y="{plan.bottom(number) - 2:.1f}" '
                f'width="{2 * half:.1f}" height="4" rx="2"/>'
            )
    for number in range(len(plan.picture.links)):
        yield from draw_label(plan, number)
    if plan.picture.entry is not None:
        x, top = plan.x[plan.picture.entry], plan.top(plan.picture.entry)
        yield f'<g class="first"><title>the first token</title><circle class="token" cx="{x:.1f}" cy="{top - 20:.1f}" r="5"/>'
        yield f'<path class="link line" d="M{x:.1f} {top - 15:.1f}V{top - 7:.1f}"/>'
        yield f'<path class="head-line" d="M{x:.1f} {top:.1f}l-4 -8h8z"/></g>'


def _legend(plan: Plan) -> Iterator[tuple[str, float, str]]:
    picture = plan.picture
    links = range(len(picture.links))
    looks = {look(picture, number) for number in links}
    rows = {
        "number": ("tried in this order; the first that matches is taken", any(numbered(picture, n) for n in links)),
        "bar": (
            "all arcs that match are taken at once",
            any(vertex.mode == "inclusive" and len(picture.out[n]) > 1 for n, vertex in enumerate(picture.vertices)),
        ),
        "back": ("leads back", bool(picture.ordered.back)),
        "fail": ("after a failure", "fail" in looks),
        "undo": ("undoes finished work when the run fails", "undo" in looks),
    }
    for mark, (words, used) in rows.items():
        if used:
            yield mark, wide(words, SMALL_SIZE, SANS_EM), words


def _draw_legend(legend: list[tuple[str, float, str]], top: float) -> Iterator[str]:
    for row, (mark, _, words) in enumerate(legend):
        y = top + row * _LEGEND_ROW - 2
        if mark == "number":
            yield f'<circle class="pill" cx="{MARGIN + 12:g}" cy="{y:.1f}" r="7"/>'
            yield f'<text class="said sans dim" x="{MARGIN + 12:g}" y="{y + 3.7:.1f}" text-anchor="middle">1</text>'
        elif mark == "bar":
            yield f'<rect class="bar" x="{MARGIN:g}" y="{y - 2:.1f}" width="24" height="4" rx="2"/>'
        else:
            yield f'<path class="link {mark}" d="M{MARGIN:g} {y:.1f}h24"/>'
        yield f'<text class="small sans dim" x="{MARGIN + 34:g}" y="{y + 4:.1f}">{clean(words)}</text>'


def _draw_box(picture: Picture, number: int, box: Box, x: float, y: float) -> Iterator[str]:
    vertex = picture.vertices[number]
    left = x - box.width / 2
    yield f'<g class="{_classes(picture, number)}"><title>{clean(_box_title(picture, number))}</title>'
    if vertex.loop:
        for away in (6, 3) if vertex.loop.mode == "parallel" else (3,):
            yield _rect("stack", left + away, y + away, box.width, box.height, 9)
    yield _rect("box", left, y, box.width, box.height, 9)
    family = FAMILY.get(vertex.kinds[0], "other") if vertex.kinds else "other"
    if vertex.known:
        yield _rect(f"{family}-work", left + 6, y + 10, 4, box.height - 20, 2)
    yield _text("name", x, y + 22, box.name)
    yield _text("small dim" if vertex.known else "small warn", x, y + 39, box.does)
    if box.pills:
        at = x - (sum(pill.width + PILL_GAP for pill in box.pills) - PILL_GAP) / 2
        for pill in box.pills:
            yield from _draw_pill(pill, at, y + 48)
            at += pill.width + PILL_GAP
    yield "</g>"


def _draw_pill(pill: Pill, x: float, y: float) -> Iterator[str]:
    yield _rect("pill", x, y, pill.width, PILL_HEIGHT, PILL_HEIGHT / 2)
    yield f'<path class="icon" transform="translate({x + 6:.1f} {y + 3:.1f})" d="{ICONS[pill.icon]}"/>'
    yield f'<text class="small sans dim" x="{x + 20:.1f}" y="{y + 13:.1f}">{clean(pill.words)}</text>'


def _classes(picture: Picture, number: int) -> str:
    vertex = picture.vertices[number]
    marks = {
        "entry": number == picture.entry,
        "final": number == picture.final,
        "unknown": not vertex.known,
        "unreachable": vertex.known and not vertex.reachable,
    }
    return " ".join(["step", *(name for name, is_so in marks.items() if is_so)])


def _box_title(picture: Picture, number: int) -> str:
    """Return the tooltip of a box, which screen readers also read."""
    vertex = picture.vertices[number]
    lines = [vertex.name + (" (entry)" if number == picture.entry else "")]
    if not vertex.known:
        return f"{vertex.name}: an arc leads here, and there is no such step"
    lines += [vertex.desc] if vertex.desc else []
    lines += [f"{label}: {kind}" for label, kind in vertex.tasks]
    if vertex.loop:
        lines.append(f"for each {vertex.loop.iterator} in {vertex.loop.over}")
    if vertex.gate is not None:
        lines.append(f"admitted when {' or '.join(text or 'nothing else matches' for text in vertex.gate) or 'never'}")
    if not vertex.reachable:
        lines.append("no token can come here")
    return "\n".join(lines)


def _rect(name: str, x: float, y: float, width: float, height: float, radius: float) -> str:
    return f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}"/>'


def _text(name: str, x: float, y: float, words: str) -> str:
    return f'<text class="{name}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{clean(words)}</text>'
