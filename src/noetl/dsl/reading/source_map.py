"""Map a character of a scalar to its offset in the source, for every YAML style.

Errors in a template are shown at the exact column. Tested in tests/unit/dsl/reading/test_source_map.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from noetl.dsl.reading.nodes import Rewritten, Scalar, Source

_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_BLANKS_AND_BREAKS: Final = re.compile("[ \t\r\n\x85\u2028\u2029]+")
_TO_LINE_END: Final = re.compile("[^\r\n\x85\u2028\u2029]*")
_CONTINUATION: Final = re.compile("\\\\(?:\r\n|[\r\n\x85\u2028\u2029])")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[\s\S])"
)


def locate(source: Source, scalar: Scalar, offset: int) -> int:
    """Return the offset in the source of the character at `offset` in `scalar.text`.

    A space from a folded line break maps to that break; the end of the text, and anything after it, to the offset after its
    last character.
    """
    return SourceMap(source, scalar).locate(offset)


class SourceMap:
    """The offsets of one scalar, computed once for many questions."""

    def __init__(self, source: Source, scalar: Scalar) -> None:
        self._source = source
        self._rewritten: list[Rewritten] = []  # spellings between the value and what is written, outermost first
        while isinstance(scalar, Rewritten) and isinstance(scalar.origin, Scalar):
            self._rewritten.append(scalar)
            scalar = scalar.origin
        self._scalar = scalar
        self._places: list[int] | None = None

    def locate(self, offset: int) -> int:
        scalar, text = self._scalar, self._scalar.text
        for spelling in self._rewritten:
            offset = spelling.original(offset)
        if isinstance(scalar, Rewritten):
            return scalar.start
        if not scalar.style and scalar.end - scalar.start == len(text):
            return scalar.start + min(max(offset, 0), len(text))
        if scalar.style in ("'", '"') and scalar.end - scalar.start == len(text) + 2:
            return scalar.start + 1 + min(max(offset, 0), len(text))
        if self._places is None:
            self._places = offsets(self._source, scalar)
        if not self._places:
            return scalar.start + len(scalar.style)
        if offset >= len(text):
            return self._places[-1] + 1
        return self._places[min(max(offset, 0), len(self._places) - 1)]


def offsets(source: Source, scalar: Scalar) -> list[int]:
    """Return the offset in the source of every character of `scalar.text`."""
    if scalar.style in ("|", ">"):
        places = _block(source.text, scalar)
    elif scalar.style:
        places = _flow(source.text, scalar.start + 1, max(scalar.end - 1, scalar.start + 1), scalar.style)
    else:
        places = _flow(source.text, scalar.start, scalar.end, "")
    return places[: len(scalar.text)]


def _flow(text: str, start: int, end: int, quote: str) -> list[int]:
    places: list[int] = []
    at = start
    continued = False
    while at < end:
        blanks = _BLANKS_AND_BREAKS.match(text, at, end)
        if blanks:
            places.extend(_folded(text, at, blanks.end(), continued=continued))
            at, continued = blanks.end(), False
            continue
        continued = False
        if quote == '"' and text[at] == "\\":
            continuation = _CONTINUATION.match(text, at, end)
            if continuation:
                at, continued = continuation.end(), True
                continue
            places.append(at)
            escape = _ESCAPE.match(text, at, end)
            at = escape.end() if escape else at + 1
            continue
        places.append(at)
        at += 2 if quote == "'" and text.startswith("''", at) else 1
    return places


def _folded(text: str, start: int, end: int, *, continued: bool) -> Iterator[int]:
    breaks = list(_BREAK.finditer(text, start, end))
    if continued:
        yield from (each.start() for each in breaks)
    elif not breaks:
        yield from range(start, end)
    elif text[breaks[0].start()] in "\u2028\u2029" or len(breaks) == 1:
        yield from (each.start() for each in breaks)
    else:
        yield from (each.start() for each in breaks[1:])


def _block(text: str, scalar: Scalar) -> list[int]:
    indent = indentation(text, scalar)
    wanted = len(scalar.text)
    places: list[int] = []
    pending: list[int] = []  # breaks since the last line with content
    previous_is_blank = True
    for start, end in lines_below(text, scalar.start):
        content = start + indent
        # Folding removes at most one of the pending breaks.
        if len(places) + len(pending) > wanted or text[start : min(content, end)].strip(" "):
            break
        if content >= end:
            pending.append(end)
            continue
        is_blank = text[content] in " \t"
        folds = scalar.style == ">" and bool(places) and not previous_is_blank and not is_blank
        if folds and len(pending) > 1 and text[pending[0]] not in "\u2028\u2029":
            del pending[0]
        places.extend(pending)
        places.extend(range(content, end))
        pending, previous_is_blank = [end], is_blank
    return places + pending


def lines_below(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line below the line of `at`."""
    while True:
        end = _line_end(text, at)
        broken = _BREAK.match(text, end)
        if not broken:
            return
        at = broken.end()
        yield at, _line_end(text, at)


def _line_end(text: str, at: int) -> int:
    match = _TO_LINE_END.match(text, at)
    return match.end() if match else at


def indentation(text: str, scalar: Scalar) -> int:
    """Return the indentation of a block scalar, from its first line with content."""
    value = scalar.text.lstrip("\n\u2028\u2029")
    skipped = len(scalar.text) - len(value)
    if not value:
        return len(text)
    lines = lines_below(text, scalar.start)
    start, end = next(islice(lines, skipped, None), (scalar.start, scalar.start))
    return _leading_spaces(text[start:end]) - _leading_spaces(value[: _line_end(value, 0)])


def _leading_spaces(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
