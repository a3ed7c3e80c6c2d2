"""Limits of a request body: bytes, time, number of values, nesting depth.

A body that is too large is never held whole. A body within the byte limit can still hold millions of empty lists, so its
commas and brackets are counted before it is decoded; so are numbers such as 1e308, each of which takes microseconds.
Tested in tests/server/http/test_limits.py.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, TypeVar, cast

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from noetl.model.refs import MOST_BYTES as MOST_RESULT_BYTES
from noetl.server.http.lines import MIN_RATE
from noetl.server.problems import Refusal, invalid_input

Result = TypeVar("Result")
MOST_BYTES = 8 * 1024 * 1024
MOST_BLOB_BYTES = MOST_RESULT_BYTES + 1024 * 1024  # compression may make a result a little longer
_IN_MEMORY = 1024 * 1024  # a longer body is spooled to a file
MOST_VALUES = 400_000
MOST_EXTREME = 5_000
MOST_DEPTH = 64
_EXTREME = re.compile(rb"\d[eE][+-]?0*[1-9]\d\d")  # decoding near an end of the range takes 100 times longer
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))


async def read_body(headers: Mapping[bytes, bytes], receive: Receive, body_s: float, most: int = MOST_BYTES) -> bytes:
    """Read a body into memory. Raises Refusal as soon as it is known to be too large."""
    parts: list[bytes] = []
    await _read(headers, receive, body_s, most, parts.append)
    return b"".join(parts)


@asynccontextmanager
async def spool_body(
    headers: Mapping[bytes, bytes], receive: Receive, body_s: float, most: int
) -> AsyncIterator[BinaryIO]:
    """Read a body into a temporary file; a small one stays in memory."""
    with SpooledTemporaryFile(_IN_MEMORY) as file:
        await _read(headers, receive, body_s, most, file.write)
        yield cast("BinaryIO", file)


async def _read(
    headers: Mapping[bytes, bytes], receive: Receive, body_s: float, most: int, write: Callable[[bytes], object]
) -> None:
    """Read a body part by part. Raises Refusal, ClientDisconnect."""
    declared = headers.get(b"content-length")
    if declared and (not declared.isdigit() or int(declared) > most):
        raise _too_large(most)
    began = asyncio.get_running_loop().time()
    size, is_more = 0, True
    while is_more:
        try:
            async with asyncio.timeout_at(began + body_s + size / MIN_RATE):
                message = await receive()
        except TimeoutError:
            raise _too_slow(body_s) from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise _too_large(most)
        write(part)
        is_more = message.get("more_body", False)


def decode_json(
    body: bytes | str, decoder: msgspec.json.Decoder[Result], what: str = "The body", most_depth: int = MOST_DEPTH
) -> Result:
    """Decode JSON of bounded size and depth. Raises Refusal."""
    raw = body.encode() if isinstance(body, str) else body
    if raw.count(b",") > MOST_VALUES:
        raise _too_many(what)
    refuse_extremes(raw, what)
    if raw.count(b"[") + raw.count(b"{") > most_depth:  # fewer brackets cannot be too deep
        _refuse_depth(raw, what, most_depth)
    try:
        return decoder.decode(raw)
    except RecursionError:
        raise _too_deep(what, most_depth) from None
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise invalid_input(error, what) from None
    except UnicodeDecodeError:
        raise Refusal(400, "malformed", f"{what} is not UTF-8.", fix="Encode it as UTF-8.") from None


def refuse_extremes(raw: bytes, what: str) -> None:
    """Refuse JSON with very many numbers that are slow to decode. Raises Refusal."""
    if raw.count(b",") < MOST_EXTREME or count_extremes(raw) <= MOST_EXTREME:
        return
    if count_extremes(outside_texts(raw)) > MOST_EXTREME:
        detail = f"{what} holds more than {MOST_EXTREME:,} numbers with an exponent of three digits."
        raise Refusal(413, "too-many-values", detail, fix="Write them as text, or put them where a task can read them.")


def count_extremes(raw: bytes) -> int:
    """Count the numbers with an exponent of three digits, not much beyond the limit."""
    return sum(1 for _ in islice(_EXTREME.finditer(raw), MOST_EXTREME + 1))


def outside_texts(raw: bytes) -> bytes:
    """Return JSON without its texts."""
    return b"".join(raw.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])


def _refuse_depth(raw: bytes, what: str, most: int) -> None:
    """Refuse JSON that is too deep; the caller's decoder reports what is no JSON."""
    brackets = square_brackets(raw)
    if brackets.count(b"[") > MOST_VALUES:
        raise _too_many(what)
    if not exceeds_depth(brackets, most):
        return
    try:
        msgspec.json.decode(raw)
    except RecursionError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    raise _too_deep(what, most)


def square_brackets(raw: bytes) -> bytes:
    """Return the brackets of JSON outside of its texts, all as square ones."""
    quoted = raw.replace(b"\\\\", b"").replace(b'\\"', b"").translate(_SQUARE, _NO_BRACKETS)
    return b"".join(quoted.replace(b'""', b"").split(b'"')[::2])


def exceeds_depth(brackets: bytes, most: int) -> bool:
    """Return whether brackets are nested deeper than `most` levels, or do not match."""
    for _ in range(most):
        size = len(brackets)
        brackets = brackets.replace(b"[]", b"")  # the innermost pairs
        if len(brackets) in (0, size):
            break
    return bool(brackets)


def _too_many(what: str) -> Refusal:
    detail = f"{what} holds more than {MOST_VALUES:,} values."
    return Refusal(413, "too-many-values", detail, fix="Send it in several requests.")


def _too_large(most: int) -> Refusal:
    return Refusal(
        413,
        "too-large",
        f"The body is larger than {most:,} bytes.",
        fix="Send less, or put large data where a task can read it.",
        headers={"Connection": "close"},
    )


def _too_slow(body_s: float) -> Refusal:
    return Refusal(
        408,
        "too-slow",
        f"The body did not arrive within {body_s:g} seconds, and one more for each KiB.",
        fix="Send the request again, faster.",
        headers={"Connection": "close"},
    )


def _too_deep(what: str, most: int) -> Refusal:
    return Refusal(400, "too-deep", f"{what} is nested deeper than {most} levels.", fix="Send flatter data.")
