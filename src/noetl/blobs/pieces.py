"""JSON that is too large to be written or read in one go: piece by piece, so that other threads come in between.

A library that reads 200 MB at once lets nobody else run for seconds, a thread or not. In pieces it takes little longer, and
heartbeats go on meanwhile. The values are the same. Tested in tests/unit/blobs/test_pieces.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

_LIGHT: Final = 20_000  # values; from here on, writing goes to a thread
_AT_ONCE: Final = 500  # items of a list
_LARGE: Final = 1 << 20  # bytes; from here on, reading goes to a thread
_PIECE: Final = 1 << 18  # bytes that are read in one go
_DEEPEST: Final = 50  # what is nested deeper is read in one go
_maps = msgspec.json.Decoder(dict[str, msgspec.Raw])
_lists = msgspec.json.Decoder(list[msgspec.Raw])
Read = Callable[[Any], Any]


async def encoded(value: Any) -> bytes:
    """Write a value as JSON; a large one in a thread and piece by piece."""
    return msgspec.json.encode(value) if _is_light(value) else await asyncio.to_thread(_whole, value)


async def decoded(data: bytes, read: Read = msgspec.json.decode) -> Any:
    """Read JSON; a large one in a thread and piece by piece. Raises what `read` raises."""
    return read(data) if len(data) < _LARGE else await asyncio.to_thread(in_pieces, data, read)


def in_pieces(data: bytes, read: Read = msgspec.json.decode) -> Any:
    """Read JSON piece by piece; what cannot be taken apart is left to `read`."""
    try:
        return _taken(data, read, 0)
    except msgspec.DecodeError:
        return read(data)


def _taken(data: bytes | msgspec.Raw, read: Read, depth: int) -> Any:
    if len(data) <= _PIECE or depth > _DEEPEST:
        return read(bytes(data))
    first = bytes(memoryview(data)[:1])
    if first == b"{":
        return {key: _taken(value, read, depth + 1) for key, value in _maps.decode(data).items()}
    if first != b"[":
        return read(bytes(data))
    found: list[Any] = []
    few: list[bytes | msgspec.Raw] = []
    size = 0
    for item in _lists.decode(data):
        if len(item) > _PIECE:
            found += [*_few(few, read), _taken(item, read, depth + 1)]
            few, size = [], 0
            continue
        few.append(item)
        size += len(item)
        if size > _PIECE:
            found += _few(few, read)
            few, size = [], 0
    return found + _few(few, read)


def _few(items: list[bytes | msgspec.Raw], read: Read) -> list[Any]:
    return read(b"[" + b",".join(items) + b"]") if items else []


def _is_light(value: Any) -> bool:
    """Tell whether a value is written in no time; looks at no more of it than it takes to know."""
    left, waiting = _LIGHT, [value]
    while waiting and left > 0:
        one = waiting.pop()
        left -= len(one) // 100 if isinstance(one, str) else 1
        if isinstance(one, Mapping | list | tuple):
            if len(one) > left:
                return False
            waiting.extend(one.values() if isinstance(one, Mapping) else one)
    return left > 0


def _whole(value: Any) -> bytes:
    return b"".join(_pieces(value))


def _pieces(value: Any) -> Iterator[bytes]:
    """Give the JSON of a value in pieces, none of which takes long."""
    if isinstance(value, Mapping) and all(type(key) is str for key in value):
        yield b"{"
        for number, (key, item) in enumerate(value.items()):
            yield (b"," if number else b"") + msgspec.json.encode(key) + b":"
            yield from _pieces(item)
        yield b"}"
    elif isinstance(value, list | tuple) and len(value) > _AT_ONCE:
        yield b"["
        for start in range(0, len(value), _AT_ONCE):
            yield (b"," if start else b"") + msgspec.json.encode(value[start : start + _AT_ONCE])[1:-1]
        yield b"]"
    else:
        yield msgspec.json.encode(value)
