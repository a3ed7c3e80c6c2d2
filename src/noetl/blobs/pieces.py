"""Encodes and decodes large JSON in pieces, so that other threads run in between.

A decoder that reads 200 MB at once holds the interpreter lock for seconds, in whatever thread. In pieces it takes little
longer, and heartbeats continue. The values are the same. Tested in tests/unit/blobs/test_pieces.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from sys import getsizeof
from typing import Any, Final

import msgspec

_LIGHT: Final = 1 << 20  # bytes in memory; a larger value is encoded in a thread
_AT_ONCE: Final = 500  # items of a list
_LARGE: Final = 1 << 18  # bytes; more are decoded in a thread
_PIECE: Final = 1 << 16  # bytes that are decoded at once
_DEEPEST: Final = 50  # levels of nesting; deeper values are decoded at once
_maps = msgspec.json.Decoder(dict[str, msgspec.Raw])
_lists = msgspec.json.Decoder(list[msgspec.Raw])
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))
Read = Callable[[Any], Any]


async def encoded(value: Any) -> bytes:
    """Encode a value as JSON; a large one in a thread, in pieces."""
    return msgspec.json.encode(value) if _is_light(value) else await asyncio.to_thread(_encode_split, value)


async def decoded(data: bytes, read: Read = msgspec.json.decode) -> Any:
    """Decode JSON; a large text in a thread, in pieces. Raises what `read` raises."""
    return read(data) if len(data) < _LARGE else await asyncio.to_thread(in_pieces, data, read)


def in_pieces(data: bytes, read: Read = msgspec.json.decode) -> Any:
    """Decode JSON in pieces; `read` decodes what cannot be split."""
    try:
        return _decode_split(data, read, 0)
    except msgspec.DecodeError:
        return read(data)


def _decode_split(data: bytes | msgspec.Raw, read: Read, depth: int) -> Any:
    if len(data) <= _PIECE or depth > _DEEPEST:
        return read(bytes(data))
    first = bytes(memoryview(data)[:1])
    if first == b"{":
        return {key: _decode_split(value, read, depth + 1) for key, value in _maps.decode(data).items()}
    if first != b"[":
        return read(bytes(data))
    found: list[Any] = []
    batch: list[bytes | msgspec.Raw] = []
    size = 0
    for item in _lists.decode(data):
        if len(item) > _PIECE:
            found += [*_decode_batch(batch, read), _decode_split(item, read, depth + 1)]
            batch, size = [], 0
            continue
        batch.append(item)
        size += len(item)
        if size > _PIECE:
            found += _decode_batch(batch, read)
            batch, size = [], 0
    return found + _decode_batch(batch, read)


def _decode_batch(items: list[bytes | msgspec.Raw], read: Read) -> list[Any]:
    return read(b"[" + b",".join(items) + b"]") if items else []


def _is_light(value: Any) -> bool:
    left, waiting = _LIGHT, [value]
    while waiting:
        left -= sum(map(getsizeof, waiting))
        if left < 0:
            return False  # before its items are listed: there may be millions
        nested = [one.values() if type(one) is dict else _items(one) for one in waiting if type(one) not in _SCALARS]
        waiting = list(chain.from_iterable(nested))
    return True


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, list | tuple):
        return value
    return value.values() if isinstance(value, Mapping) else ()


def _encode_split(value: Any) -> bytes:
    return b"".join(_pieces(value))


def _pieces(value: Any) -> Iterator[bytes]:
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
