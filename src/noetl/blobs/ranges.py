"""Helpers of all blob stores. Tested in tests/conformance/test_blobs.py."""

from __future__ import annotations

from collections.abc import Iterator
from io import SEEK_END
from typing import BinaryIO, Final

from noetl.model.errors import InvalidInput

PIECE: Final = 4 * 1024 * 1024


def span(start: int, length: int | None) -> tuple[int, int | None]:
    """Return the first byte and the one after the last; None: to the end."""
    if start < 0 or (length is not None and length < 0):
        raise InvalidInput(f"a range of a result starts at {start} and has {length} bytes; neither may be negative")
    return start, None if length is None else start + length


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """Read a file from its start, in pieces."""
    file.seek(0)
    while piece := file.read(PIECE):
        yield piece


def size_of(file: BinaryIO) -> int:
    return file.seek(0, SEEK_END)


def missing(ref: str) -> InvalidInput:
    return InvalidInput(f"the stored result {ref} is not there: it was never stored, has expired, or was deleted")
