"""Bounds on what a request may bring: bytes, values, depth; read so that a refused body is never held whole.

A body within the byte limit can still be made of millions of empty lists, so its separators are counted before it is
decoded. Tested in tests/server/test_limits.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, TypeVar, cast

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from noetl.model.refs import MOST_BYTES as MOST_RESULT_BYTES
from noetl.server.connections import arrived
from noetl.server.problems import Refusal, invalid

Result = TypeVar("Result")
MOST_BYTES = 8 * 1024 * 1024
MOST_BLOB_BYTES = MOST_RESULT_BYTES + 1024 * 1024  # packing may make a result a little longer
_IN_MEMORY = 1024 * 1024  # of a body that is kept in a file
MOST_VALUES = 400_000
MOST_DEPTH = 64
_NESTED = (dict, list)
_SURELY_FLAT = MOST_DEPTH  # with fewer brackets than this, nothing can be too deep


async def body_of(headers: Mapping[bytes, bytes], receive: Receive, most: int = MOST_BYTES) -> bytes:
    """Read a body; one that is too large is refused as soon as that is known."""
    body = arrived(receive)
    if body is None:
        _refuse_told(headers, most)
        return b"".join([part async for part in _parts(receive, most)])
    if len(body) > most:
        raise _too_large(most)
    return body


@asynccontextmanager
async def spooled(headers: Mapping[bytes, bytes], receive: Receive, most: int) -> AsyncIterator[BinaryIO]:
    """Read a body into a file that is gone afterwards; a small one stays in memory."""
    _refuse_told(headers, most)
    with SpooledTemporaryFile(_IN_MEMORY) as file:
        async for part in _parts(receive, most):
            file.write(part)
        yield cast("BinaryIO", file)


def _refuse_told(headers: Mapping[bytes, bytes], most: int) -> None:
    told = headers.get(b"content-length")
    if told and (not told.isdigit() or int(told) > most):
        raise _too_large(most)


async def _parts(receive: Receive, most: int) -> AsyncIterator[bytes]:
    """Give a body of unknown length part by part, up to a limit. Raises ClientDisconnect where it is broken off."""
    size, is_more = 0, True
    while is_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise _too_large(most)
        yield part
        is_more = message.get("more_body", False)


def decoded(body: bytes | str, decoder: msgspec.json.Decoder[Result], what: str = "the body") -> Result:
    """Decode JSON of bounded size and depth into what is expected."""
    raw = body.encode() if isinstance(body, str) else body
    if raw.count(b",") > MOST_VALUES:
        raise Refusal(413, "too-many-values", f"{what} holds more than {MOST_VALUES:,} values", fix="Send it in parts.")
    if raw.count(b"[") + raw.count(b"{") > _SURELY_FLAT:
        _refuse_depth(raw, what)
    try:
        return decoder.decode(raw)
    except RecursionError:
        raise _too_deep(what) from None
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise invalid(error, what) from None
    except UnicodeDecodeError:
        raise Refusal(400, "malformed", f"{what} is not UTF-8") from None


def _refuse_depth(raw: bytes, what: str) -> None:
    try:
        data = msgspec.json.decode(raw)
    except RecursionError:
        raise _too_deep(what) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return  # told better by the typed decoder
    if deeper(data, MOST_DEPTH):
        raise _too_deep(what)


def deeper(data: Any, most: int) -> bool:
    """Tell whether plain data is nested deeper than that."""
    level = [data] if isinstance(data, _NESTED) else []
    for _ in range(most):
        level = [
            value
            for one in level
            for value in (one.values() if isinstance(one, dict) else one)
            if isinstance(value, _NESTED)
        ]
        if not level:
            return False
    return True


def _too_large(most: int) -> Refusal:
    return Refusal(
        413,
        "too-large",
        f"the body is larger than {most:,} bytes",
        fix="Send less, or put large data where a task can read it.",
        headers={"Connection": "close"},
    )


def _too_deep(what: str) -> Refusal:
    return Refusal(400, "too-deep", f"{what} is nested deeper than {MOST_DEPTH} levels", fix="Send flatter data.")
