"""Remote worker in this process, and a network to the server that can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from noetl.client.session import Session
from noetl.settings import Settings, WorkerSettings
from noetl.wiring.remote_worker import remote_worker
from noetl.worker.loop import Worker

_CHUNK = 65536


@asynccontextmanager
async def working(folder: Path, *servers: str, **more: Any) -> AsyncIterator[tuple[Worker, Session]]:
    """Run a worker for these servers until the block ends."""
    given = WorkerSettings(servers, more.pop("token", None), more.pop("name", "w-1"), **{"capacity": 4, **more})
    async with remote_worker(Settings(folder / "worker.db"), given) as (worker, session):
        session.drained = worker.drain
        tasks = [asyncio.create_task(session.run()), asyncio.create_task(worker.run())]
        try:
            yield worker, session
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in reversed(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class Network:
    """Connections to a server; can be cut, kept cut, or refused an upgrade."""

    def __init__(self, target: str) -> None:
        host, _, port = target.removeprefix("http://").partition(":")
        self._target = (host, int(port))
        self._connections: set[asyncio.StreamWriter] = set()
        self.is_cut = False
        self.upgrades = True
        self.opened = self.cuts = self.refused = 0
        self.url = ""
        self.after_bytes: int | None = None  # cut once, after this many more bytes from the server

    def cut(self) -> None:
        for writer in self._connections:
            writer.transport.abort()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Cut every connection and refuse new ones inside the block."""
        self.is_cut = True
        self.cut()
        try:
            yield
        finally:
            self.is_cut = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            self.refused += 1
            writer.transport.abort()
            return
        self.opened += 1
        with suppress(OSError, asyncio.IncompleteReadError):
            first = await reader.readuntil(b"\r\n\r\n")
            if b"websocket" in first.lower() and not self.upgrades:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                await writer.drain()
                writer.close()
                return
            there, to_there = await asyncio.open_connection(*self._target)
            self._connections |= {writer, to_there}
            try:
                to_there.write(first)
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._pump(reader, to_there, counted=False))
                    group.create_task(self._pump(there, writer, counted=True))
            finally:
                self._connections -= {writer, to_there}
                for each in (writer, to_there):
                    each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                if counted and self.after_bytes is not None:
                    if len(data) > self.after_bytes:
                        writer.write(data[: self.after_bytes])
                        await writer.drain()
                        self.after_bytes = None
                        self.cuts += 1
                        break
                    self.after_bytes -= len(data)
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def network(target: str) -> AsyncIterator[Network]:
    """A way to a server that the test can cut."""
    made = Network(target)
    server = await asyncio.start_server(made._serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        made.cut()
        await asyncio.sleep(0)
