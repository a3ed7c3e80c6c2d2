"""Cuts the bytes of a WebSocket into frames, so that whole binary messages can take a short way past the library.

A message that came in one piece is known by its first bytes; everything else (other frames, parts of messages, messages that
are large or not all there yet) is given on as it came, for the library to read. Does no I/O. Tested in
tests/unit/wire/test_frames.py.
"""

from __future__ import annotations

from os import urandom
from struct import Struct
from typing import Final

try:
    from websockets.speedups import apply_mask
except ImportError:  # where it is not compiled
    from websockets.utils import apply_mask

_BINARY: Final = 0x82  # a whole message, not compressed
_head: Final = Struct(">BBH").pack
_LARGE: Final = 64 * 1024  # not worth keeping until all of it is there


class Cutter:
    """The frames of one direction; `masked` are those that come from clients."""

    def __init__(self, *, masked: bool) -> None:
        self._masked = masked
        self._kept = b""  # the beginning of a frame
        self._passing = 0  # bytes of a large frame that are still to come
        self._in_parts = False  # a message has begun that comes in several frames

    def cut(self, data: bytes) -> list[tuple[bytes | None, bytes]]:
        """Give what has come: of each whole message what it says, and of each frame its bytes."""
        said = self.whole(data)
        if said is not None:
            return [(said, data)]
        found: list[tuple[bytes | None, bytes]] = []
        if self._passing:
            found.append((None, data[: self._passing]))
            data, self._passing = data[self._passing :], max(0, self._passing - len(data))
        if self._kept:
            data, self._kept = self._kept + data, b""
        at = 0
        while at < len(data):
            start, end = _bounds(data, at)
            if end > len(data):
                self._wait(data[at:], end - at, found)
                break
            found.append(self._frame(data[at:end], start - at))
            at = end
        return found

    def whole(self, data: bytes) -> bytes | None:
        """Give what a message says that came by itself, as nearly all of them do; None for everything else."""
        if (
            self._kept
            or self._passing
            or self._in_parts
            or len(data) < 8
            or data[0] != _BINARY
            or (data[1] > 127) is not self._masked
        ):
            return None
        size, start = data[1] & 0x7F, 2
        if size == 126:
            size, start = data[2] << 8 | data[3], 4
        elif size == 127:
            return None
        if not self._masked:
            return data[start:] if len(data) == start + size else None
        start += 4
        return apply_mask(data[start:], data[start - 4 : start]) if len(data) == start + size else None

    def _wait(self, begun: bytes, size: int, found: list[tuple[bytes | None, bytes]]) -> None:
        if size <= _LARGE:
            self._kept = begun
            return
        self._note(begun[0])
        self._passing = size - len(begun)
        found.append((None, begun))

    def _frame(self, frame: bytes, start: int) -> tuple[bytes | None, bytes]:
        in_parts = self._in_parts
        self._note(frame[0])
        if frame[0] != _BINARY or in_parts or bool(frame[1] & 0x80) is not self._masked:
            return None, frame
        said = frame[start:]
        return (apply_mask(said, frame[start - 4 : start]) if self._masked else said), frame

    def _note(self, first: int) -> None:
        if not first & 0x08:  # not one of those that may come in between
            self._in_parts = not first & 0x80


def _bounds(data: bytes, at: int) -> tuple[int, int]:
    """Give where a frame's content begins and where it ends; beyond the data where that cannot be told yet."""
    beyond = len(data) + 1
    if len(data) < at + 2:
        return beyond, beyond
    size, start = data[at + 1] & 0x7F, at + 2
    if size > 125:
        start += 2 if size == 126 else 8
        if len(data) < start:
            return beyond, beyond
        size = int.from_bytes(data[at + 2 : start], "big")
    start += 4 if data[at + 1] & 0x80 else 0
    return start, start + size


def binary(data: bytes, *, masked: bool) -> bytes:
    """Give a whole binary message as a frame."""
    size, bit = len(data), 0x80 if masked else 0
    if size < 126:
        head = bytes((_BINARY, bit | size))
    elif size < 65_536:
        head = _head(_BINARY, bit | 126, size)
    else:
        head = bytes((_BINARY, bit | 127)) + size.to_bytes(8, "big")
    if not masked:
        return head + data
    key = urandom(4)
    return head + key + apply_mask(data, key)
