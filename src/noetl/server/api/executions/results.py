"""Stored results by reference. Tested in tests/server/auth/test_vault.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import Response

from noetl.blobs import stored
from noetl.blobs.ranges import PIECE
from noetl.masking.json_stream import JsonStreamMask
from noetl.model.refs import SCHEME
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.pieces import SLICE, Pieces
from noetl.server.problems import Refusal
from noetl.wire.requests import ResultQuery

_PLAIN = "application/octet-stream"
_JSON = "application/json"
noun = Noun("results", "Large results by reference.")


@noun.route("GET", "/api/results/resolve", "viewer", gives="*/*", problems=(400, 404), of="path")
async def resolve(call: Call, query: ResultQuery) -> Response:
    """Return a stored result, or a range of its bytes."""
    if not query.ref.startswith(SCHEME):
        detail = f"A reference must begin with {SCHEME}."
        raise Refusal(422, "invalid-input", detail, where="query ref", fix="Send the reference of a stored result.")
    services = call.services
    await _find_owner(call, query.ref)
    async with services.resolving:
        meta, size = await stored.verify(services.blobs, query.ref)
    kind = str(meta.get("content_type", _PLAIN)).partition(";")[0]
    # The output of a task must never be served as a page of this server.
    kind = kind if kind in ("application/json", "text/plain") else _PLAIN
    start, end = min(query.start, size), size
    if query.start or query.length is not None:
        kind = _PLAIN
        end = size if query.length is None else min(size, start + query.length)
    release = services.answers.take(call.actor, min(size, PIECE))
    pieces = stored.stream(services.blobs, query.ref, meta)
    if str(meta.get("content_type", _JSON)).partition(";")[0].endswith("json"):
        pieces = _masked(pieces, services.mask.stream())
    pieces = _within(pieces, start, end)
    return Pieces(pieces, release, media_type=kind, size=end - start)


async def _masked(pieces: AsyncGenerator[bytes, None], mask: JsonStreamMask) -> AsyncGenerator[bytes, None]:
    """Yield as many bytes, with the mask over values under the names of secrets."""
    async with aclosing(pieces):
        async for piece in pieces:
            for begin in range(0, len(piece), SLICE):  # a masked copy of the whole piece would double its memory
                yield mask.feed(piece[begin : begin + SLICE])
                await asyncio.sleep(0)
    yield mask.end()


async def _find_owner(call: Call, ref: str) -> None:
    """Check that the execution of a result exists for the caller."""
    if call.reach is not None:
        owner = ref.removeprefix(f"{SCHEME}execution/").partition("/")[0]
        await call.find_execution(owner)


async def _within(pieces: AsyncGenerator[bytes, None], start: int, end: int) -> AsyncGenerator[bytes, None]:
    """Yield the bytes from `start` to `end`."""
    at = 0
    async with aclosing(pieces):
        async for piece in pieces:
            if at + len(piece) > start:
                yield piece[max(0, start - at) : end - at]
            at += len(piece)
            if at >= end:
                return
