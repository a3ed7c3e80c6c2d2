"""Convert editor positions to offsets and back.

An editor counts lines from 0 and columns in code units, of UTF-16 unless another encoding was negotiated. A line ends
with LF, CRLF or CR. A page counts code units of UTF-16 from the start of the text. Offsets count characters without the byte order mark, as in `noetl.dsl`.
Tested in tests/unit/authoring/test_positions.py.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import Literal, NamedTuple

Encoding = Literal["utf-8", "utf-16", "utf-32"]
_BREAK = re.compile("\r\n|\n|\r")
_MARK = "\ufeff"


class Place(NamedTuple):
    """Line and column, both from 0, the column in code units."""

    line: int
    column: int


class Lines:
    """Text with its line index; positions outside are clamped."""

    __slots__ = ("_ends", "_lead", "_starts", "_units", "text")

    def __init__(self, text: str, encoding: Encoding = "utf-16") -> None:
        self.text = text
        self._units = encoding
        self._lead = len(_MARK) if text.startswith(_MARK) else 0
        breaks = [(found.start(), found.end()) for found in _BREAK.finditer(text)]
        self._starts = [0, *(end for _, end in breaks)]
        self._ends = [*(start for start, _ in breaks), len(text)]

    def offset(self, line: int, column: int) -> int:
        if line >= len(self._starts):
            return len(self.text) - self._lead
        number = max(line, 0)
        start = self._starts[number]
        content = self.text[start : self._ends[number]]
        return max(start + _characters(content, column, self._units) - self._lead, 0)

    def place(self, offset: int) -> Place:
        at = min(max(offset + self._lead, 0), len(self.text))
        line = bisect_right(self._starts, at) - 1
        start = self._starts[line]
        return Place(line, _width(self.text[start : min(at, self._ends[line])], self._units))


class CodeUnits:
    """Offsets of a text in UTF-16 code units, as JavaScript counts them, and back.

    Code units count the byte order mark, which is a character of the text there; offsets outside are clamped.
    """

    __slots__ = ("_lead", "_length", "_wide", "_wide_units")

    def __init__(self, text: str) -> None:
        self._lead = len(_MARK) if text.startswith(_MARK) else 0
        self._length = len(text)
        self._wide = [] if text.isascii() else [at for at, one in enumerate(text) if one > "\uffff"]
        self._wide_units = [at + number for number, at in enumerate(self._wide)]

    def units(self, offset: int) -> int:
        """Return the code units before an offset."""
        at = min(max(offset + self._lead, 0), self._length)
        return at + bisect_left(self._wide, at)

    def offset(self, units: int) -> int:
        """Return the offset of a code unit, rounded down inside a character."""
        at = min(max(units - bisect_left(self._wide_units, units), 0), self._length)
        return max(at - self._lead, 0)


def _width(text: str, encoding: Encoding) -> int:
    if encoding == "utf-32" or text.isascii():
        return len(text)
    return sum(_unit_count(character, encoding) for character in text)


def _unit_count(character: str, encoding: Encoding) -> int:
    code = ord(character)
    if encoding == "utf-16":
        return 2 if code > 0xFFFF else 1
    return 1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)


def _characters(text: str, units: int, encoding: Encoding) -> int:
    """Convert code units to characters, rounding down inside a character."""
    if units <= 0:
        return 0
    if encoding == "utf-32" or text.isascii():
        return min(units, len(text))
    left = units
    for count, character in enumerate(text):
        left -= _unit_count(character, encoding)
        if left < 0:
            return count
    return len(text)
