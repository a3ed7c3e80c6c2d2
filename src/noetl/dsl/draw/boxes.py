"""The boxes of SVG pictures: how large a step is, and how it is drawn. Tested in tests/unit/dsl/test_draw_svg.py."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import category, east_asian_width
from xml.sax.saxutils import escape

from msgspec import Struct

from noetl.dsl.draw.captions import pipeline, shortened
from noetl.dsl.draw.looks import FAMILY, ICONS, MONO_EM, SANS_EM
from noetl.dsl.draw.picture import Picture, Vertex

NAME_SIZE, SMALL_SIZE, SAID_SIZE = 14.0, 11.0, 10.5
_PADDING = 16.0
_PILL_HEIGHT, _PILL_GAP = 18.0, 6.0
_NARROWEST = 112.0


class Pill(Struct, frozen=True):
    """A small mark with words in a box."""

    icon: str
    words: str

    @property
    def width(self) -> float:
        return 24.0 + wide(self.words, SMALL_SIZE, SANS_EM)


class Box(Struct, frozen=True):
    """A step with its size."""

    name: str
    does: str
    pills: tuple[Pill, ...]
    width: float
    height: float


def wide(text: str, size: float, em: float = MONO_EM) -> float:
    """Give the width of a text, for type of that size; wide characters count twice."""
    cells = sum(
        0 if category(char) in ("Mn", "Me") else 2 if east_asian_width(char) in ("W", "F") else 1 for char in text
    )
    return cells * size * em


def clean(text: str) -> str:
    """Give a text that may stand in XML, as an attribute too."""
    kept = "".join(char if char == "\n" or char.isprintable() else " " for char in text)
    return escape(kept, {'"': "&quot;"})


def box_of(vertex: Vertex, final: bool) -> Box:
    """Measure the box of a step."""
    name = shortened(vertex.name, 40)
    does = "not in the workflow" if not vertex.known else shortened(pipeline(vertex)) if vertex.tasks else "routing"
    pills = tuple(_pills(vertex, final))
    pill_width = sum(pill.width + _PILL_GAP for pill in pills) - _PILL_GAP
    inner = max(wide(name, NAME_SIZE), wide(does, SMALL_SIZE), pill_width, _NARROWEST)
    return Box(name, does, pills, inner + 2 * _PADDING, 50.0 + (_PILL_HEIGHT + 8 if pills else 0))


def _pills(vertex: Vertex, final: bool) -> Iterator[Pill]:
    if vertex.join:
        yield Pill("join", f"join {vertex.join}")
    if vertex.gate is not None:
        yield Pill("gate", "gate")
    if vertex.loop:
        at_once = f" ×{shortened(vertex.loop.max_in_flight, 16)}" if vertex.loop.max_in_flight else ""
        yield Pill("loop", f"{shortened(vertex.loop.mode, 12)}{at_once}")
    if final:
        yield Pill("final", "at the end")
    if vertex.undoes:
        yield Pill("undo", "undoes " + shortened(", ".join(vertex.undoes), 24))


def draw_box(picture: Picture, number: int, box: Box, x: float, y: float) -> Iterator[str]:
    """Draw a box whose top stands at y and whose axis at x."""
    vertex = picture.vertices[number]
    left = x - box.width / 2
    yield f'<g class="{_classes(picture, number)}"><title>{clean(_title(picture, number))}</title>'
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
        at = x - (sum(pill.width + _PILL_GAP for pill in box.pills) - _PILL_GAP) / 2
        for pill in box.pills:
            yield from _draw_pill(pill, at, y + 48)
            at += pill.width + _PILL_GAP
    yield "</g>"


def _draw_pill(pill: Pill, x: float, y: float) -> Iterator[str]:
    yield _rect("pill", x, y, pill.width, _PILL_HEIGHT, _PILL_HEIGHT / 2)
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


def _title(picture: Picture, number: int) -> str:
    """Give what a reader sees when the pointer rests on a box, and hears from a screen reader."""
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
