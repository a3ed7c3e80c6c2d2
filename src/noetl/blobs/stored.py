"""How values become blobs and come back: encoded, packed, and checked against their hash when they are read.

Works on any blob store. A value that is not what was stored is an error, never a wrong value. Tested in
tests/unit/blobs/test_stored.py.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from noetl.engine.collect import REMOVED, moment
from noetl.model.errors import BadReference, InvalidInput, StoreUnavailable
from noetl.model.refs import KIND, SCOPES
from noetl.ports import Blobs

JSON: Final = "application/json"
PACKINGS: Final = ("none", "gzip")
_TTL: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)?\s*")
_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LIGHT: Final = 20_000  # values; from here on, writing goes to a thread
_AT_ONCE: Final = 500  # items of a list
_LARGE: Final = 1 << 20  # from here on, hashing and packing go to a thread


async def put(
    blobs: Blobs,
    ref: str,
    data: bytes,
    store: str,
    content_type: str,
    packing: str,
    terms: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Store bytes under an address; gives what a reference tells of them. `terms` say when they may go."""
    packed, digest = await _aside(len(data), _pack, data, packing)
    meta = {"content_type": content_type, "bytes": len(data), "sha256": digest, "compression": packing}
    await blobs.put(ref, packed, {**meta, "store": store, **(terms or {})})
    return meta


def terms(scope: str | None, expires_at: int | None, now: int) -> dict[str, Any]:
    """Give what the collector of results goes by; raises InvalidInput."""
    if scope is not None and scope not in SCOPES:
        raise InvalidInput(f"`scope` is one of {', '.join(SCOPES)}, and here it is {scope!r}")
    return {"scope": scope or "execution", "expires_at": expires_at, "stored_at": now}


def expiry(ttl: Any, now: int) -> int | None:
    """Give when a time to live ends; raises InvalidInput."""
    if ttl is None:
        return None
    found = _TTL.fullmatch(str(ttl))
    if found is None:
        raise InvalidInput(f"`ttl` {ttl!r} is no time: write seconds, or a text such as `7d`")
    return now + round(float(found[1]) * _UNITS[found[2] or "s"])


async def encoded(value: Any) -> bytes:
    """Write a value as JSON; a large one in a thread and piece by piece, so that everything else goes on meanwhile."""
    return msgspec.json.encode(value) if _is_light(value) else await asyncio.to_thread(_whole, value)


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


async def get(blobs: Blobs, ref: str, told: Mapping[str, Any] | None = None) -> tuple[bytes, Mapping[str, Any]]:
    """Read the bytes under an address and check them; raises BadReference.

    `told` is what a reference says of them. Without one, what was stored beside them counts.
    """
    try:
        packed = await blobs.get(ref)
        meta = told or await blobs.about(ref)
        if told is None:
            _refuse_removed(ref, meta)
    except InvalidInput as error:
        raise BadReference(str(error)) from None
    except (StoreUnavailable, OSError) as error:
        raise BadReference(f"the stored result {ref} cannot be read now: {error}") from error
    data, digest = await _aside(len(packed), _unpack, packed, str(meta.get("compression", "none")))
    if digest != meta.get("sha256"):
        _refuse_removed(ref, await blobs.about(ref))
        raise BadReference(f"the stored result {ref} is damaged: its bytes are not those that were stored")
    return data, meta


def _refuse_removed(ref: str, meta: Mapping[str, Any]) -> None:
    removed = meta.get(REMOVED)
    if isinstance(removed, Mapping):
        raise BadReference(f"the stored result {ref} was removed at {moment(int(removed['at']))}: {removed['why']}")


async def value(blobs: Blobs, ref: str, told: Mapping[str, Any] | None = None) -> Any:
    """Read the value under an address: JSON is decoded, other texts stay text."""
    data, meta = await get(blobs, ref, told)
    return decoded(data, str(meta.get("content_type", JSON)), ref)


def decoded(data: bytes, content_type: str, ref: str) -> Any:
    """Give bytes as plain data."""
    try:
        return msgspec.json.decode(data) if content_type.partition(";")[0].endswith("json") else data.decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadReference(f"the stored result {ref} is no {content_type} that can be read as data") from None


def reference(ref: str, store: str, meta: Mapping[str, Any], scope: str, expires_at: int | None) -> dict[str, Any]:
    """Give the reference of something that was stored."""
    return {"kind": KIND, "ref": ref, "store": store, "scope": scope, "expires_at": expires_at, "meta": dict(meta)}


async def _aside(size: int, job: Any, *given: Any) -> Any:
    return job(*given) if size < _LARGE else await asyncio.to_thread(job, *given)


def _pack(data: bytes, packing: str) -> tuple[bytes, str]:
    return gzip.compress(data, 6, mtime=0) if packing == "gzip" else data, sha256(data).hexdigest()


def _unpack(packed: bytes, packing: str) -> tuple[bytes, str]:
    try:
        data = gzip.decompress(packed) if packing == "gzip" else packed
    except (OSError, EOFError, zlib.error):
        return b"", "damaged"
    return data, sha256(data).hexdigest()
