"""Store values as blobs: encoded, compressed, and verified by hash when read.

Works on any blob store. Damaged data is an error, never a wrong value. Tested in tests/unit/blobs/test_stored.py.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import zlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from hashlib import sha256
from typing import Any, Final

import msgspec

from noetl.blobs import pieces
from noetl.blobs.ranges import PIECE
from noetl.engine.queries.result_gc import REMOVED, moment
from noetl.model.errors import BadReference, InvalidInput, StoreUnavailable
from noetl.model.refs import KIND, SCOPES, with_views
from noetl.ports import Blobs

JSON: Final = "application/json"
PACKINGS: Final = ("none", "gzip")
_TTL: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)?\s*")
_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_GZIP: Final = 31  # window bits of zlib for gzip
_LARGE: Final = 1 << 20  # bytes; more are hashed and compressed in a thread


async def put(
    blobs: Blobs,
    ref: str,
    data: bytes,
    store: str,
    content_type: str,
    packing: str,
    terms: Mapping[str, Any] | None = None,
    also: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Store bytes; return their `meta`.

    `terms` say when they may be collected. `also` gives further names to values of a map, which are stored once.
    """
    packed, digest = await aside(len(data), _pack, data, packing)
    meta = {"content_type": content_type, "bytes": len(data), "sha256": digest, "compression": packing}
    meta |= {"also": dict(also)} if also else {}
    await blobs.put(ref, packed, {**meta, "store": store, **(terms or {})})
    return meta


def terms(scope: str | None, expires_at: int | None, now: int) -> dict[str, Any]:
    """Return what the garbage collector of results reads. Raises InvalidInput."""
    if scope is not None and scope not in SCOPES:
        raise InvalidInput(f"`scope` is one of {', '.join(SCOPES)}, and here it is {scope!r}")
    return {"scope": scope or "execution", "expires_at": expires_at, "stored_at": now}


def expiry(ttl: Any, now: int) -> int | None:
    """Return when a time to live ends. Raises InvalidInput."""
    if ttl is None:
        return None
    found = _TTL.fullmatch(str(ttl))
    if found is None:
        raise InvalidInput(f"`ttl` {ttl!r} is no time: write seconds, or a text such as `7d`")
    return now + round(float(found[1]) * _UNITS[found[2] or "s"])


async def get(blobs: Blobs, ref: str, expected: Mapping[str, Any] | None = None) -> tuple[bytes, Mapping[str, Any]]:
    """Read and verify bytes, by default by their own `meta`. Raises BadReference."""
    try:
        packed = await blobs.get(ref)
        meta = expected or await blobs.about(ref)
        if expected is None:
            _refuse_removed(ref, meta)
    except InvalidInput as error:
        raise BadReference(str(error)) from None
    except (StoreUnavailable, OSError) as error:
        raise BadReference(f"the stored result {ref} cannot be read now: {error}") from error
    data, digest = await aside(
        len(packed), _unpack, packed, str(meta.get("compression", "none")), int(meta.get("bytes") or 0)
    )
    if digest != meta.get("sha256"):
        _refuse_removed(ref, await blobs.about(ref))
        raise _damaged(ref)
    return data, meta


async def verify(blobs: Blobs, ref: str) -> tuple[Mapping[str, Any], int]:
    """Verify bytes in bounded memory; return `meta` and size. Raises BadReference."""
    try:
        meta = await blobs.about(ref)
        _refuse_removed(ref, meta)
        size, hashed = 0, sha256()
        async with aclosing(stream(blobs, ref, meta)) as found:
            async for piece in found:
                size += len(piece)
                await aside(len(piece), hashed.update, piece)
    except InvalidInput as error:
        raise BadReference(str(error)) from None
    except (StoreUnavailable, OSError) as error:
        raise BadReference(f"the stored result {ref} cannot be read now: {error}") from error
    if hashed.hexdigest() != meta.get("sha256"):
        raise _damaged(ref)
    return meta, size


async def stream(blobs: Blobs, ref: str, meta: Mapping[str, Any]) -> AsyncGenerator[bytes, None]:
    """Yield unpacked bytes in pieces of at most `PIECE`. Raises BadReference."""
    unpacker = zlib.decompressobj(_GZIP) if meta.get("compression") == "gzip" else None
    left, start = int(meta.get("bytes") or 0), 0
    while packed := await blobs.get(ref, start, PIECE):
        start += len(packed)
        if unpacker is None:
            yield packed
            continue
        piece = packed
        while packed or len(piece) == PIECE:  # a full piece may leave more behind
            try:
                piece = await aside(len(packed), unpacker.decompress, packed, PIECE)
            except zlib.error:
                raise _damaged(ref) from None
            left -= len(piece)
            if left < 0:
                raise _damaged(ref)  # it unpacks to more than was stored
            if piece:
                yield piece
            if unpacker.eof:
                return
            packed = unpacker.unconsumed_tail
    if unpacker is not None:
        raise _damaged(ref)  # its end is missing


def _damaged(ref: str) -> BadReference:
    return BadReference(f"the stored result {ref} is damaged: its bytes are not those that were stored")


def _refuse_removed(ref: str, meta: Mapping[str, Any]) -> None:
    removed = meta.get(REMOVED)
    if isinstance(removed, Mapping):
        raise BadReference(f"the stored result {ref} was removed at {moment(int(removed['at']))}: {removed['why']}")


async def value(blobs: Blobs, ref: str, expected: Mapping[str, Any] | None = None) -> Any:
    """Read the value under an address: JSON is decoded, other texts stay text."""
    data, meta = await get(blobs, ref, expected)
    return with_views(await decoded(data, str(meta.get("content_type", JSON)), ref), meta.get("also") or {})


async def decoded(data: bytes, content_type: str, ref: str) -> Any:
    """Decode bytes by content type. Raises BadReference."""
    try:
        return await pieces.decoded(data) if content_type.partition(";")[0].endswith("json") else data.decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadReference(f"the stored result {ref} is no {content_type} that can be read as data") from None


def reference(ref: str, store: str, meta: Mapping[str, Any], scope: str, expires_at: int | None) -> dict[str, Any]:
    """Build the reference of a stored result."""
    return {"kind": KIND, "ref": ref, "store": store, "scope": scope, "expires_at": expires_at, "meta": dict(meta)}


async def aside(size: int, job: Any, *args: Any) -> Any:
    """Run a job on `size` bytes, in a thread if there are many."""
    return job(*args) if size < _LARGE else await asyncio.to_thread(job, *args)


def _pack(data: bytes, packing: str) -> tuple[bytes, str]:
    return gzip.compress(data, 6, mtime=0) if packing == "gzip" else data, sha256(data).hexdigest()


def _unpack(packed: bytes, packing: str, size: int) -> tuple[bytes, str]:
    if packing != "gzip":
        return packed, sha256(packed).hexdigest()
    stream = zlib.decompressobj(_GZIP)
    try:
        data = stream.decompress(packed, size + 1)
    except zlib.error:
        return b"", "damaged"
    return data, sha256(data).hexdigest() if stream.eof else "damaged"  # also if it is longer than expected
