"""Size of a step's box in SVG. Tested in tests/unit/dsl/draw/test_svg.py."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from noetl.dsl.draw.model.captions import cells, pipeline, shortened
from noetl.dsl.draw.model.picture import Vertex

MONO_EM = 0.605  # width of a character relative to the font size
SANS_EM = 0.58
NAME_SIZE, SMALL_SIZE, SAID_SIZE = 14.0, 11.0, 10.5
PILL_HEIGHT, PILL_GAP = 18.0, 6.0
_PADDING = 16.0
_NARROWEST = 112.0


class Pill(Struct, frozen=True):
    """A small rounded label with an icon inside a box."""

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
    """Return the width of a text in a font of that size."""
    return cells(text) * size * em


def box_of(vertex: Vertex, final: bool) -> Box:
    """Measure the box of a step."""
    name = shortened(vertex.name, 40)
    does = "not in the workflow" if not vertex.known else shortened(pipeline(vertex)) if vertex.tasks else "routing"
    pills = tuple(_pills(vertex, final))
    pill_width = sum(pill.width + PILL_GAP for pill in pills) - PILL_GAP
    inner = max(wide(name, NAME_SIZE), wide(does, SMALL_SIZE), pill_width, _NARROWEST)
    return Box(name, does, pills, inner + 2 * _PADDING, 50.0 + (PILL_HEIGHT + 8 if pills else 0))


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
