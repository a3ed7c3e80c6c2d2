"""Server-sent events: one execution until it ends, or all executions.

Events of one execution are numbered without gaps, so `seq` is the id. Across executions the id is a position
{writer: number}: a client that resumes from it misses nothing and sees nothing twice, on any server. Nothing is buffered:
the log is read at the pace of the client. Tested in tests/server/http/test_sse.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from noetl.engine.queries.view import envelope, types
from noetl.masking.readers import ReaderMask
from noetl.model.events import Event
from noetl.ports import Position
from noetl.server.feeds.completion import ENDED
from noetl.server.http.endpoint import Call
from noetl.server.http.pieces import gone
from noetl.server.problems import Refusal
from noetl.wire.requests import FeedQuery, FollowQuery

_BEAT_S = 10.0  # comment line to detect dead connections
_LAST_S = 0.5  # for the last bytes
_BETWEEN_PARTS_S = 0.1
_PIECE = 64 * 1024
_SHOWN = ("playbook.*", "execution.cancelled")
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
Part = Callable[[int], Awaitable[tuple[int, bytes]]]  # what changed after an event: its last event, and JSON
_position = msgspec.json.Decoder(dict[str, int])


async def stream_execution(call: Call, execution_id: str, query: FollowQuery) -> Response:
    """Follow one execution."""
    row = await call.services.reader.row(execution_id)
    is_over = row.get("status") in ENDED
    wanted = types(query.type) if query.type else None
    last = call.header(b"last-event-id").strip()
    if last and not last.isdecimal():
        raise _bad_event_id("the number of an event")
    after = int(last) if last else query.after

    async def texts() -> AsyncGenerator[str, None]:
        followers, mask = call.services.control.followers, call.services.mask
        following = followers.follow_batches(execution_id, after, may_be_over=is_over, wanted=wanted)
        async with aclosing(following) as batches:
            async for events in batches:
                shown = [(event, str(event.seq)) for event in events if wanted is None or event.event_type in wanted]
                async for piece in _pieces(mask, shown):
                    yield piece
        yield "event: end\ndata: {}\n\n"

    return _stream(call, texts())


async def stream_parts(call: Call, execution_id: str, after: int, part: Part) -> Response:
    """Follow one execution in parts that merge its events, at most ten a second."""
    last = call.header(b"last-event-id").strip()
    if last and not last.isdecimal():
        raise _bad_event_id("the number of an event")
    begin = int(last) if last else after

    async def texts() -> AsyncGenerator[str, None]:
        sent, data = await part(begin)
        if sent > begin:
            yield f"id: {sent}\ndata: {data.decode()}\n\n"
        following = call.services.control.followers.follow_batches(execution_id, max(sent, begin))
        async with aclosing(following) as batches:
            async for events in batches:
                if events[-1].seq <= sent:
                    continue
                sent, data = await part(max(sent, begin))
                yield f"id: {sent}\ndata: {data.decode()}\n\n"
                await call.services.clock.sleep(_BETWEEN_PARTS_S)
        yield "event: end\ndata: {}\n\n"

    return _stream(call, texts())


async def stream_all(call: Call, query: FeedQuery) -> Response:
    """Follow all executions."""
    wanted = types(query.type or _SHOWN)
    last = call.header(b"last-event-id").strip() or query.after
    if last:
        try:
            position = _position.decode(last)
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise _bad_event_id("a position of this stream") from None
    else:
        position = dict(await call.services.store.writers())

    async def texts() -> AsyncGenerator[str, None]:
        # The first line holds the start position, so that a client can resume before the first event.
        yield f"id: {_id(position)}\nevent: begin\ndata: {{}}\n\n"
        async with aclosing(call.services.control.followers.follow_all(position, wanted)) as positions:
            async for batch in positions:
                hidden = await _hidden(call, batch)
                shown = _positioned(batch, position, wanted, hidden)
                async for piece in _pieces(call.services.mask, shown):
                    yield piece

    return _stream(call, texts())


async def _hidden(call: Call, batch: Iterable[Position]) -> set[str]:
    """Return the executions of a batch that do not exist for the caller."""
    if call.reach is None:
        return set()
    ids = {found.event.execution_id for found in batch}
    rows = {name: await call.services.store.execution(name) for name in ids}
    return {name for name, row in rows.items() if row is None or not call.sees(str(row.get("path", "")))}


def _positioned(
    batch: Iterable[Position], position: dict[str, int], wanted: frozenset[str], hidden: set[str]
) -> Iterator[tuple[Event, str]]:
    """Yield the events that are shown, each with its id."""
    for found in batch:
        position[found.writer_id] = found.writer_seq
        if found.event.event_type in wanted and found.event.execution_id not in hidden:
            yield found.event, _id(position)


async def _pieces(mask: ReaderMask, events: Iterable[tuple[Event, str]]) -> AsyncGenerator[str, None]:
    """Join events into pieces of bounded size, one write each."""
    piece, size = [], 0
    for event, name in events:
        data = await mask.answer(envelope(event))
        text = f"id: {name}\nevent: {event.event_type}\ndata: {data.decode()}\n\n"
        piece.append(text)
        size += len(text)
        if size >= _PIECE:
            yield "".join(piece)
            piece, size = [], 0
    if piece:
        yield "".join(piece)


def _id(position: Mapping[str, int]) -> str:
    return msgspec.json.encode(position).decode()


def _stream(call: Call, texts: AsyncGenerator[str, None]) -> Response:
    return _Stream(call, texts, call.services.streams.take(call.actor))


def _bad_event_id(expected: str) -> Refusal:
    detail = f"Last-Event-ID, or `after`, is not {expected}."
    return Refusal(400, "invalid-input", detail, where="header Last-Event-ID", fix="Send the last id you received.")


class _Stream(Response):
    """A response that ends with its texts, its token, on disconnect or at shutdown."""

    def __init__(self, call: Call, texts: AsyncGenerator[str, None], release: Callable[[], None]) -> None:
        super().__init__(None, 200, _HEADERS, "text/event-stream")
        del self.headers["content-length"]
        self._services = call.services
        self._actor = call.actor
        self._texts = texts
        self._release = release
        self._coming: asyncio.Future[str | None] | None = None

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        ends: set[asyncio.Future[Any]] = {
            asyncio.ensure_future(self._services.stopping.wait()),
            asyncio.ensure_future(gone(receive)),
        }
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            with suppress(Refusal), self._services.gate.valid(self._actor):
                await self._send_texts(send, ends)
        finally:
            unfinished = [*ends, *([self._coming] if self._coming is not None else [])]
            for waiting in unfinished:
                waiting.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
            await self._texts.aclose()
            self._release()
        with suppress(TimeoutError):  # a client that reads nothing does not keep the stream open
            async with asyncio.timeout(_LAST_S):
                await send({"type": "http.response.body", "body": b""})

    async def _send_texts(self, send: Send, ends: set[asyncio.Future[Any]]) -> None:
        while True:
            coming = self._coming = self._coming or asyncio.ensure_future(anext(self._texts, None))
            done, _ = await asyncio.wait({coming, *ends}, timeout=_BEAT_S, return_when=asyncio.FIRST_COMPLETED)
            if done & ends:
                return
            text = coming.result() if coming in done else ": still there\n\n"
            if text is None:
                return
            self._coming = None if coming in done else coming
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
