"""Server-sent events: one execution until it ends, or all of them.

One execution's events are numbered without gaps, so their `seq` is the id. Across executions the id is a position
{writer: number}: whoever goes on from it misses nothing and sees nothing twice, whichever server answers. Nothing is
buffered: a slow reader is read for more slowly. Tested in tests/server/test_sse.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse

from noetl.engine.view import envelope, types
from noetl.model.events import Event
from noetl.server.endpoint import Call
from noetl.server.problems import Refusal
from noetl.wire.requests import FeedQuery, FollowQuery

_BEAT_S = 10.0  # a line now and then, so that a dead connection is noticed
_SHOWN = ("playbook.*", "execution.cancelled")
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_position = msgspec.json.Decoder(dict[str, int])


async def followed(call: Call, execution_id: str, query: FollowQuery) -> Response:
    """Follow one execution."""
    await call.services.reader.row(execution_id)
    wanted = types(query.type) if query.type else None
    last = call.request.headers.get("last-event-id", "").strip()
    if last and not last.isdecimal():
        raise Refusal(400, "invalid-input", "Last-Event-ID is no number of an event", where="header Last-Event-ID")
    after = int(last) if last else query.after

    async def texts() -> AsyncGenerator[str, None]:
        async with aclosing(call.services.control.followers.follow(execution_id, after)) as events:
            async for event in events:
                if wanted is None or event.event_type in wanted:
                    yield _text(event, str(event.seq))
        yield "event: end\ndata: {}\n\n"

    return _stream(call, texts())


async def listed_live(call: Call, query: FeedQuery) -> Response:
    """Follow all executions."""
    wanted = types(query.type or _SHOWN)
    last = call.request.headers.get("last-event-id", "").strip()
    if last:
        try:
            position = _position.decode(last)
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise Refusal(400, "invalid-input", "Last-Event-ID is no position", where="header Last-Event-ID") from None
    else:
        position = dict(await call.services.store.writers())

    async def texts() -> AsyncGenerator[str, None]:
        # The first line tells where the stream begins: whoever is cut off before an event goes on from there.
        yield f"id: {_id(position)}\nevent: begin\ndata: {{}}\n\n"
        async with aclosing(call.services.control.followers.follow_all(position)) as positions:
            async for batch in positions:
                for found in batch:
                    position[found.writer_id] = found.writer_seq
                    if found.event.event_type in wanted:
                        yield _text(found.event, _id(position))

    return _stream(call, texts())


def _id(position: Mapping[str, int]) -> str:
    return msgspec.json.encode(position).decode()


def _text(event: Event, name: str) -> str:
    return f"id: {name}\nevent: {event.event_type}\ndata: {msgspec.json.encode(envelope(event)).decode()}\n\n"


def _stream(call: Call, texts: AsyncGenerator[str, None]) -> Response:
    services = call.services
    if services.streams.locked():
        raise Refusal(503, "busy", "too many streams are open", fix="Try again later.", retry_after_s=5.0)
    return StreamingResponse(_kept(call, texts), 200, _HEADERS, "text/event-stream")


async def _kept(call: Call, texts: AsyncGenerator[str, None]) -> AsyncIterator[str]:
    """Give texts as they come, and a line now and then where none do; ends with the server."""
    services = call.services
    stopping: asyncio.Future[Any] = asyncio.ensure_future(services.stopping.wait())
    coming: asyncio.Future[Any] | None = None
    try:
        async with services.streams, aclosing(texts):
            while not stopping.done():
                coming = coming or asyncio.ensure_future(anext(texts))
                done, _ = await asyncio.wait({coming, stopping}, timeout=_BEAT_S, return_when=asyncio.FIRST_COMPLETED)
                if coming in done:
                    try:
                        text = coming.result()
                    except StopAsyncIteration:
                        return
                    finally:
                        coming = None
                    yield text
                elif not done:
                    yield ": still there\n\n"
    finally:
        for waiting in (stopping, coming):
            if waiting is not None:
                waiting.cancel()
