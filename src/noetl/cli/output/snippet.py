"""Source line of a diagnostic with carets, safe to print on any terminal."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import category, east_asian_width

from noetl.dsl.reading.nodes import Position, Source

_MAX_WIDTH = 140


def snippet(source: Source, start: Position, end: Position) -> Iterator[str]:
    """Yield the numbered line, cut around the place if long, and the carets."""
    line = source.line(start.line)
    first = min(start.column - 1, len(line))
    last = min(end.column - 1, len(line)) if end.line == start.line else len(line)
    cut = max(0, first - _MAX_WIDTH // 2) if len(line) > _MAX_WIDTH else 0
    shown = line[cut : cut + _MAX_WIDTH]
    number = str(start.line)
    yield f"{number} | {_printable(shown)}"
    before = _width(line[cut:first])
    marked = max(1, _width(line[first : min(last, cut + _MAX_WIDTH)]))
    yield f"{' ' * len(number)} | {' ' * before}{'^' * marked}"


def _printable(text: str) -> str:
    return "".join(" " if char == "\t" else "�" if category(char) in ("Cc", "Cf", "Cs") else char for char in text)


def _width(text: str) -> int:
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if category(char) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(char) in ("W", "F") else 1
