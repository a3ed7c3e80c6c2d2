"""Large results of remote workers, written and read over HTTP.

A lease authorises the worker: it can write results of the leased execution, and read those of its family (parents, children,
and what it was forked from). No blob is held whole in memory. Tested in tests/server/auth/test_vault.py.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Annotated

import msgspec
from starlette.responses import Response

from noetl.blobs.ranges import PIECE
from noetl.model.errors import BadReference, InvalidInput, UnknownExecution
from noetl.model.refs import SCHEME
from noetl.ports import BlobStore
from noetl.server.api.workers.worker import holder
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.limits import MOST_BLOB_BYTES, spool_body
from noetl.server.http.pieces import SLICE, Pieces
from noetl.server.problems import Refusal
from noetl.wire.answers import Removed
from noetl.wire.requests import BlobQuery

_PLAIN = "application/octet-stream"
_PREFIX = SCHEME + "execution/"
_MOST_KIN = 64
_ALL = 2**40  # longer than any blob
_Size = Annotated[int, msgspec.Meta(ge=0, le=MOST_BLOB_BYTES)]
noun = Noun("blobs", "Large results of remote workers.")


async def _allowed(call: Call, query: BlobQuery, *, writes: bool) -> None:
    await holder(call, query.worker, (query.work, query.epoch))
    mine = query.work.partition(":")[0]
    if not query.ref.startswith(_PREFIX):
        detail = f"An address must begin with {_PREFIX}."
        raise Refusal(422, "invalid-input", detail, where="query ref", fix="Send the address of a stored result.")
    owner = query.ref.removeprefix(_PREFIX).partition("/")[0]
    if owner == mine or (not writes and await _root(call, owner) == await _root(call, mine)):
        return
    raise Refusal(
        403,
        "not-held",
        f"The work {query.work} is not related to execution {owner}.",
        fix="Use a lease of that execution or of its family.",
    )


async def _root(call: Call, execution_id: str) -> str:
    for _ in range(_MOST_KIN):
        first = await call.services.store.read(execution_id, 0, 1) if execution_id.isdecimal() else []
        if not first:
            raise UnknownExecution(f"No execution {execution_id} in this store.")
        payload = first[0].payload
        before = (payload.get("parent") or {}).get("execution_id")
        before = before or (payload.get("forked_from") or {}).get("execution_id")
        if before is None:
            break
        execution_id = str(before)
    return execution_id


@noun.route("PUT", "/api/blobs", "worker", takes=_PLAIN, problems=(403, 404, 409, 413, 503))
async def put(call: Call, query: BlobQuery) -> Removed:
    """Store bytes under an address of the leased execution."""
    await _allowed(call, query, writes=True)
    try:
        meta = msgspec.json.decode(query.meta, type=dict)
        msgspec.convert(meta.get("bytes", 0), _Size)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        detail = f"`meta` is not a JSON object with a valid size: {error}."
        raise Refusal(422, "invalid-input", detail, where="query meta", fix="See /api/openapi.json.") from None
    body_s = call.services.bounds.http.body_s
    async with AsyncExitStack() as stack:
        with call.services.gate.valid(call.actor):
            file = await stack.enter_async_context(spool_body(call.headers, call.receive, body_s, MOST_BLOB_BYTES))
        await call.services.blobs.put_file(query.ref, file, meta)
    return Removed(removed=0)


@noun.route("GET", "/api/blobs", "worker", gives=_PLAIN, problems=(403, 404, 409))
async def get(call: Call, query: BlobQuery) -> Response:
    """Read bytes under an address of the execution's family."""
    await _allowed(call, query, writes=False)
    try:
        about = await call.services.blobs.about(query.ref)
        first = await call.services.blobs.get(
            query.ref, query.start, min(PIECE, _ALL if query.length is None else query.length)
        )
    except InvalidInput as error:
        raise BadReference(str(error)) from None
    headers = {"X-NoETL-Meta": msgspec.json.encode(about).decode("latin-1")}
    if len(first) <= SLICE:
        return Response(first, 200, headers, _PLAIN)
    release = call.services.answers.take(call.actor, PIECE)
    return Pieces(_rest(call.services.blobs, query, first), release, 200, headers, _PLAIN)


async def _rest(blobs: BlobStore, query: BlobQuery, piece: bytes) -> AsyncGenerator[bytes, None]:
    """Yield a blob in pieces, so that it is never held whole."""
    start, end = query.start, _ALL if query.length is None else query.start + query.length
    while piece:
        yield piece
        start += len(piece)
        piece = await blobs.get(query.ref, start, min(PIECE, end - start))
