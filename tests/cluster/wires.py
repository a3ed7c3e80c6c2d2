"""A network between worker and servers that can be cut, drop data or be slow.

It has an event loop of its own in a thread, so that it goes on whatever the test does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Literal

Mode = Literal["open", "cut", "hole", "deaf", "slow"]
_CHUNK = 65536
_SLOW_S = 0.05


class Wires:
    """Connections to some servers.

    `open`: all data passes. `cut`: connections are reset, new ones too. `hole`: data is dropped silently. `deaf`: the worker's
    data arrives, replies do not. `slow`: every piece is delayed.
    """

    def __init__(self, targets: Sequence[str]) -> None:
        self._targets = [
            (host, int(port)) for host, port in (url.removeprefix("http://").split(":") for url in targets)
        ]
        self._mode: Mode = "open"
        self._writers: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Event()
        self._ready = Event()
        self._done = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self.urls: list[str] = []
        self.upgrades = True  # whether connections may become WebSockets

    @classmethod
    @contextmanager
    def between(cls, targets: Sequence[str]) -> Iterator[Wires]:
        made = cls(targets)
        thread = Thread(target=made._run, daemon=True)
        thread.start()
        assert made._ready.wait(10)
        try:
            yield made
        finally:
            made._loop.call_soon_threadsafe(made._done.set)
            thread.join(10)

    def become(self, mode: Mode) -> None:
        """Change what goes through, from now on."""
        self._loop.call_soon_threadsafe(self._become, mode)

    def _become(self, mode: Mode) -> None:
        self._mode = mode
        self._changed.set()
        self._changed = asyncio.Event()
        if mode == "cut":
            for writer in self._writers:
                writer.transport.abort()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        servers = [await asyncio.start_server(self._way_to(target), "127.0.0.1", 0) for target in self._targets]
        self.urls = [f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in servers]
        self._ready.set()
        await self._done.wait()
        for server in servers:
            server.close()
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:  # a connection may come in meanwhile
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _way_to(
        self, target: tuple[str, int]
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            first = b""
            if not self.upgrades and not (first := await self._plain(reader, writer)):
                return
            if self._mode == "cut":
                writer.transport.abort()
                return
            try:
                there, to_there = await asyncio.open_connection(*target)
            except OSError:
                writer.transport.abort()
                return
            both = {writer, to_there}
            self._writers |= both
            to_there.write(first)
            pumps = [
                asyncio.ensure_future(self._pump(reader, to_there, "there")),
                asyncio.ensure_future(self._pump(there, writer, "back")),
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._writers -= both
                for pump in pumps:
                    pump.cancel()
                for one in both:
                    one.transport.abort()

        return connected

    async def _plain(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Return the head of the first request, or nothing after refusing a WebSocket."""
        try:
            first = await reader.readuntil(b"\r\n\r\n")
        except (OSError, asyncio.IncompleteReadError):
            first = b""
        if not first or b"websocket" in first.lower():
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            writer.close()
            return b""
        return first

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str) -> None:
        with suppress(OSError):
            while True:
                data = await reader.read(_CHUNK)
                while self._mode == "hole" or (self._mode == "deaf" and way == "back"):
                    await self._changed.wait()
                if self._mode == "slow":
                    await asyncio.sleep(_SLOW_S)
                if not data:
                    return
                writer.write(data)
                await writer.drain()
