"""Answers of any size, sent at the pace of their readers.

A piece is written when the client has taken the last one. What an answer holds in memory until then counts against a quota,
so that slow readers fill no memory. Tested in tests/server/http/test_readers.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

SLICE = 64 * 1024  # bytes of one write
_MOST_IGNORED = 64 * 1024  # bytes of a body that are read while an answer is sent


class Pieces(Response):
    """Response of pieces; `release` is called when it ends."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        release: Callable[[], None],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
        size: int | None = None,
    ) -> None:
        super().__init__(None, status, headers, media_type)
        del self.headers["content-length"]
        if size is not None:
            self.headers["content-length"] = str(size)
        self._pieces = pieces
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        over = asyncio.ensure_future(gone(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in self._pieces:
                for start in range(0, len(piece), SLICE):
                    if over.done() or scope["method"] == "HEAD":
                        break
                    body = piece[start : start + SLICE]
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                else:
                    continue
                break
            if not over.done():
                await send({"type": "http.response.body", "body": b""})
        finally:
            over.cancel()
            await asyncio.gather(over, return_exceptions=True)
            await self._pieces.aclose()
            self._release()


async def of_bytes(data: bytes) -> AsyncGenerator[bytes, None]:
    """Yield bytes that are in memory, as one piece."""
    yield data


async def gone(receive: Receive) -> None:
    """Wait until the client disconnects, or sends a body that nothing reads."""
    ignored = 0
    while ignored <= _MOST_IGNORED:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        ignored += len(message.get("body", b""))
