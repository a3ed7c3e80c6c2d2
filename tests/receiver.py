"""HTTP server for tests that keeps what is posted to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from aiohttp import web


class Posted(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    body: Any  # of JSON


class Receiver:
    """Posted requests, and what the next ones are answered."""

    def __init__(self) -> None:
        self.url = ""
        self.posted: list[Posted] = []
        self.answers: list[web.Response] = []

    async def take(self, request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read() or b"null")
        self.posted.append(Posted(request.path, dict(request.headers), body))
        return self.answers.pop(0) if self.answers else web.json_response({})


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    """Run a server on loopback."""
    found = Receiver()
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/{path:.*}", found.take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield found
    finally:
        await runner.cleanup()
