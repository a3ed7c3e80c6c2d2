"""Mask JSON of any size by name while it is sent, in bounded memory.

The bytes keep their number, so that ranges of a result stay ranges: a text becomes as many asterisks, a number becomes 0.
Texts and numbers are masked if their own key is a secret's name. Tested in tests/unit/masking/test_json_stream.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_KEY: Final = re.compile(rb'"([^"\\]{1,200})"[ \t\r\n]{0,64}:[ \t\r\n]{0,64}(?=["\d-])')
_HINTED: Final = re.compile(
    rb'"([^"\\]{0,200}?(?:pass|pwd|token|key|secret|auth|cookie|session|credential|bearer|jwt)[^"\\]{0,200})"'
    rb'[ \t\r\n]{0,64}:[ \t\r\n]{0,64}(?=["\d-])',
    re.IGNORECASE,
)
_OPEN: Final = re.compile(rb'"[^"\\]{0,400}(?:"[ \t\r\n]{0,64}(?::[ \t\r\n]{0,64})?)?\Z')  # a key that goes on
_WINDOW: Final = 1024  # bytes at the end of a piece in which such a key begins
_TEXT: Final = re.compile(rb'(?:[^"\\]|\\.)*', re.DOTALL)
_NUMBER: Final = re.compile(rb"[-+.\deE]*")
_SHOWN: Final = (b"(masked secret)", b"(secret)")


class JsonStreamMask:
    """The mask over one JSON document, piece by piece."""

    def __init__(self, hides: Callable[[str], bool], *, has_more: bool = False) -> None:
        self._hides = hides
        self._key = _KEY if has_more else _HINTED
        self._carry = b""
        self._within: re.Pattern[bytes] | None = None  # a masked value that goes on: text or number

    def feed(self, piece: bytes) -> bytes:
        """Return the masked bytes that are complete."""
        data, self._carry = self._carry + piece, b""
        made: list[bytes] = []
        at = 0
        if self._within is not None:
            at = self._mask(data, 0, made, goes_on=True)
        while self._within is None:
            match = self._key.search(data, at)
            if match is None:
                break
            made.append(data[at : match.end()])
            at = match.end()
            if self._hides(match[1].decode("utf-8", "replace")) and not data.startswith(_SHOWN, at + 1):
                at = self._mask(data, at, made, goes_on=False)
        if self._within is None:
            begin = max(at, len(data) - _WINDOW)
            found = _OPEN.search(data, begin)
            end = len(data) if found is None else found.start()
            made.append(data[at:end])
            self._carry = data[end:]
        return b"".join(made)

    def end(self) -> bytes:
        """Return what is left at the end of the document."""
        left, self._carry = self._carry, b""
        return left

    def _mask(self, data: bytes, at: int, made: list[bytes], *, goes_on: bool) -> int:
        """Mask the value that begins or goes on at a place; return where it ends."""
        if not goes_on:
            self._within = _TEXT if data[at : at + 1] == b'"' else _NUMBER
            if self._within is _TEXT:
                made.append(b'"')
                at += 1
        found = self._within.match(data, at) if self._within is not None else None
        end = found.end() if found is not None else at
        if self._within is _TEXT:
            made.append(b"*" * (end - at))
        else:
            made.append((b"" if goes_on else b"0") + b" " * (end - at - (not goes_on)))
        if end == len(data) or data[end:] == b"\\":
            self._carry = data[end:]  # half an escape
        else:
            self._within = None
        return end
