"""Draws a picture as SVG, with nothing but itself: layout, looks and symbols are ours.

Readable on light and dark grounds, with a title on every box and line. The same picture always gives the same text.
Tested in tests/unit/dsl/test_draw_svg.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.draw.boxes import SMALL_SIZE, clean, draw_box, wide
from noetl.dsl.draw.captions import counted
from noetl.dsl.draw.lines import draw_label, draw_link, draw_rails, look
from noetl.dsl.draw.looks import SANS_EM, style
from noetl.dsl.draw.picture import Picture
from noetl.dsl.draw.plan import MARGIN, Plan, make_plan, numbered

_HEADING = 70.0
_LEGEND_ROW = 20.0


def draw_svg(picture: Picture) -> str:
    """Draw a picture as the text of an SVG file."""
    plan = make_plan(picture, above=_HEADING)
    legend = list(_legend(plan))
    width = max(
        plan.width, MARGIN * 2 + wide(_heading(picture), 15.0), *(MARGIN * 2 + 40 + item[1] for item in legend), 240
    )
    height = plan.height + len(legend) * _LEGEND_ROW
    shift = (width - plan.width) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {_size(width, height)} role="img">',
        f"<title>{clean(_heading(picture) or 'playbook')}</title>",
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


def _heading(picture: Picture) -> str:
    return " · ".join(filter(None, dict.fromkeys((picture.name, picture.path))))


def _summary(picture: Picture) -> str:
    steps = sum(vertex.known for vertex in picture.vertices)
    arcs = sum(link.kind == "arc" for link in picture.links)
    return " · ".join(filter(None, [picture.path, f"{counted(steps, 'step')}, {counted(arcs, 'arc')}"]))


def _drawing(plan: Plan) -> Iterator[str]:
    for number in range(len(plan.picture.links)):
        yield from draw_link(plan, number)
    yield from draw_rails(plan)
    for number, box in enumerate(plan.boxes):
        yield from draw_box(plan.picture, number, box, plan.x[number], plan.top(number))
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
    """Give what needs words: a mark, the width of the words, the words."""
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
