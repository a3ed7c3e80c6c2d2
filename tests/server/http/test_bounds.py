"""What a client without a token can take of a server: bytes, time, connections."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from uvicorn.server import ServerState
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from noetl.server.http.connection import Connection, ServerConfig
from noetl.server.http.limits import MOST_BYTES
from noetl.settings import HttpSettings, ServerSettings
from tests.server.serving import ONE, WAITS, Served, listening, process, secret

pytestmark = pytest.mark.asyncio
HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CHUNKED = b"POST /context/render HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
UPGRADE = (
    b"GET /api/worker/session HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + b"A" * 22 + b"==\r\n\r\n"
)
MOST_TAKEN = 16 * 2**20  # with what the buffers of both ends hold
PATIENCE_S = 60
ENDLESS: dict[str, tuple[bytes, bytes, int]] = {
    "headers": (HEAD, b"X-Some: " + b"v" * 500 + b"\r\n", 431),
    "short headers": (HEAD, b"a:\r\n" * 100, 431),
    "one header": (HEAD + b"X-Some: ", b"v" * 1000, 431),
    "one name": (HEAD, b"n" * 1000, 431),
    "path": (b"GET /", b"p" * 1000, 414),
    "query": (b"GET /api/executions?", b"status=running&" * 50, 414),
    "empty lines": (b"", b"\r\n" * 500, 431),
    "trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X-Some: " + b"v" * 500 + b"\r\n", 431),
    "one trailer": (CHUNKED + b"2\r\n{}\r\n0\r\nX-Some: ", b"v" * 1000, 400),
    "chunk extensions": (CHUNKED, b"1;" + b"e" * 1000 + b"\r\n{\r\n", 400),
}


class Raw:
    """A connection of a client that obeys no rule."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], Any]:
        """Read one answer with its JSON body."""
        async with asyncio.timeout(PATIENCE_S):
            text = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = text.strip().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            body = await self.reader.readexactly(int(headers["content-length"]))
        return int(first.split()[1]), headers, json.loads(body)

    async def end(self) -> bytes:
        """Read until the server closes the connection."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


@asynccontextmanager
async def raw(url: str, local: str = "127.0.0.1") -> AsyncIterator[Raw]:
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, local_addr=(local, 0))
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()


async def endlessly(url: str, first: bytes, more: bytes) -> tuple[int, int]:
    """Send until the server stops it; return the status and how much was sent.

    Without a stream: that forgets an answer that has arrived when a write fails.
    """
    loop, place, sent = asyncio.get_running_loop(), urlsplit(url), 0

    async def send() -> None:
        nonlocal sent
        await loop.sock_sendall(client, first)
        while True:
            await loop.sock_sendall(client, more * 16)
            sent += len(more) * 16
            await asyncio.sleep(0)  # it reads meanwhile
            assert sent < 10 * MOST_TAKEN, "the server takes everything"

    with socket.socket() as client:
        client.setblocking(False)
        await loop.sock_connect(client, (place.hostname, place.port))
        sending, answer = asyncio.create_task(send()), b""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not answer.endswith(b"}"):
                    answer += await loop.sock_recv(client, 65_536)
            head, _, body = answer.decode().partition("\r\n\r\n")
            status, problem = int(head.split()[1]), json.loads(body)
            assert "connection: close" in head.lower()
            assert "content-type: application/problem+json" in head.lower()
            assert problem["status"] == status
            assert problem["fix"]
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(sending, PATIENCE_S)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
    return status, sent


async def is_healthy(url: str, local: str = "127.0.0.1") -> bool:
    async with raw(url, local) as client:
        await client.send(HEAD + b"\r\n")
        return (await client.answer())[0] == 200


@pytest.mark.parametrize("what", list(ENDLESS))
async def test_what_never_ends_is_answered_and_cut(tmp_path: Path, what: str) -> None:
    first, more, status = ENDLESS[what]
    async with listening(tmp_path) as served:
        found, sent = await endlessly(served.url, first, more)
        assert found == status
        assert sent < MOST_TAKEN
        assert await is_healthy(served.url)


async def test_four_clients_with_endless_headers_do_not_move_health(tmp_path: Path) -> None:
    with process(tmp_path, "serve") as (url, _server):
        first, more, _ = ENDLESS["headers"]
        clients = [asyncio.create_task(endlessly(url, first, more)) for _ in range(4)]
        asked = 0
        while not all(client.done() for client in clients) or not asked:
            assert await is_healthy(url)
            asked += 1
        for client in clients:
            status, sent = client.result()
            assert (status, sent < MOST_TAKEN) == (431, True)


async def test_the_largest_head_that_is_allowed_is_served(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, raw(served.url) as client:
        for _ in range(2):
            await client.send(HEAD + b"X-Some: " + b"v" * 31_000 + b"\r\n\r\n")
            assert (await client.answer())[0] == 200
        await client.send(b"GET /health?" + b"q" * 16_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await client.answer())[0] == 200


async def trickle(client: Raw, data: bytes) -> None:
    """Send one byte at a time until the server answers."""
    for at in range(len(data)):
        await client.send(data[at : at + 1])
        await asyncio.sleep(0.05)  # the pace of this client


HURRY = ServerSettings(http=HttpSettings(head_s=1, body_s=1))


@pytest.mark.parametrize("before", [b"", HEAD + b"\r\n"])
async def test_headers_that_come_slowly_are_answered_408(tmp_path: Path, before: bytes) -> None:
    async with listening(tmp_path, HURRY) as served, raw(served.url) as client:
        if before:
            await client.send(before)
            assert (await client.answer())[0] == 200
        sending = asyncio.create_task(trickle(client, b"GET /" + b"p" * 10_000))
        status, headers, _ = await client.answer()
        assert (status, headers["connection"]) == (408, "close")
        assert await client.end() == b""
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def test_a_connection_that_sends_nothing_is_closed_without_an_answer(tmp_path: Path) -> None:
    async with listening(tmp_path, HURRY) as served, raw(served.url) as client:
        assert await client.end() == b""


@pytest.mark.parametrize("rest", [b"", b"{" * 10_000])
async def test_a_body_that_comes_slowly_is_answered_408(tmp_path: Path, rest: bytes) -> None:
    async with listening(tmp_path, HURRY) as served, raw(served.url) as client:
        await client.send(b"POST /context/render HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 20000\r\n\r\n{")
        sending = asyncio.create_task(trickle(client, rest))
        status, headers, problem = await client.answer()
        assert (status, headers["connection"], problem["type"]) == (408, "close", "about:blank#too-slow")
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


def body_of(size: int, *, chunked: bool) -> Iterator[bytes]:
    """Yield the headers of a body and the body, in pieces."""
    if not chunked:
        yield b"Content-Length: %d\r\n\r\n" % size
    else:
        yield b"Transfer-Encoding: chunked\r\n\r\n"
    for _ in range(size // 2**20):
        yield (b"100000\r\n" if chunked else b"") + b"x" * 2**20 + (b"\r\n" if chunked else b"")
    yield b"0\r\n\r\n" if chunked else b""


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("route", ["/api/execute", "/api/catalog", "/api/worker/report"])
async def test_a_client_that_sends_a_body_too_large_to_its_end_gets_its_413(
    tmp_path: Path, route: str, chunked: bool
) -> None:
    size = 8 * MOST_BYTES
    async with listening(tmp_path) as served, raw(served.url) as client:
        await client.send(f"POST {route} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode())
        for piece in body_of(size, chunked=chunked):  # nothing is read meanwhile
            await client.send(piece)
        status, headers, problem = await client.answer()
        assert (status, headers["connection"], problem["type"]) == (413, "close", "about:blank#too-large")
        assert await client.end() == b""


async def test_a_body_that_nothing_reads_does_not_cost_the_connection(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, raw(served.url) as client:
        for chunked in (True, False):
            await client.send(b"POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            for piece in body_of(16 * 2**20, chunked=chunked):
                await client.send(piece)
            assert (await client.answer())[0] == 404
        await client.send(HEAD + b"\r\n")
        assert (await client.answer())[0] == 200


async def test_a_request_that_is_malformed_is_answered_after_those_before_it(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, raw(served.url) as client:
        await client.send((HEAD + b"\r\n") * 3 + b"no http at all\r\n\r\n")
        answers = [await client.answer() for _ in range(4)]
        assert [answer[0] for answer in answers] == [200, 200, 200, 400]
        assert answers[-1][2]["type"] == "about:blank#malformed"
        assert await client.end() == b""


async def test_more_requests_at_once_than_are_queued_are_refused(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, raw(served.url) as client:
        await client.send((HEAD + b"\r\n") * 2_000)
        statuses = [(await client.answer())[0]]
        while statuses[-1] == 200:
            statuses.append((await client.answer())[0])
        assert statuses[-1] == 429
        assert len(statuses) < 100
        assert await client.end() == b""


FEW = ServerSettings(http=HttpSettings(connections=20, per_address=8))


async def test_idle_connections_of_an_address_yield_to_its_new_ones(tmp_path: Path) -> None:
    async with listening(tmp_path, FEW) as served, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(raw(served.url)) for _ in range(30)]
        for client in clients:
            client.writer.write(HEAD)  # and no more
        assert await is_healthy(served.url)
        assert await is_healthy(served.url, "127.0.0.2")
        for client in clients[:22]:
            assert await client.end() == b"", "more than eight connections are open"
        await clients[-1].send(b"\r\n")
        assert (await clients[-1].answer())[0] == 200


async def follow(stack: AsyncExitStack, served: Served, started: str, local: str) -> Raw:
    """Open a connection that stays busy."""
    client = await stack.enter_async_context(raw(served.url, local))
    await client.send(f"GET /api/executions/{started}/events/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert b" 200 " in await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
    return client


async def test_busy_connections_of_an_address_leave_room_for_others(tmp_path: Path) -> None:
    async with listening(tmp_path, FEW) as served, AsyncExitStack() as stack:
        started = await served.start(WAITS)
        await served.http.aclose()
        first = [await follow(stack, served, started, "127.0.0.2") for _ in range(8)]
        async with raw(served.url, "127.0.0.2") as client:
            status, headers, _ = await client.answer()
            assert (status, headers["retry-after"]) == (503, "1")
        for _ in range(8):
            await follow(stack, served, started, "127.0.0.3")
        for _ in range(4):
            await follow(stack, served, started, "127.0.0.4")
        async with raw(served.url, "127.0.0.5") as client:
            assert (await client.answer())[0] == 503
        first[0].writer.transport.abort()
        async with asyncio.timeout(PATIENCE_S):
            while not await is_room(served.url, "127.0.0.5"):
                pass


async def is_room(url: str, local: str) -> bool:
    async with raw(url, local) as client:
        await client.send(HEAD + b"\r\n")
        return (await client.answer())[0] == 200


async def test_a_session_sends_little_before_its_token(tmp_path: Path) -> None:
    token = await secret(tmp_path, "worker")
    async with listening(tmp_path, ServerSettings(auth="token")) as served:
        url = served.url.replace("http", "ws") + "/api/worker/session"
        hello = json.dumps({"type": "hello", "worker": "w", "token": token})
        async with connect(url) as refused:
            await refused.send(hello[:-1] + " " * 2**20 + "}")
            with pytest.raises(ConnectionClosed):
                await refused.recv()
        async with connect(url) as plain:
            await plain.send(hello)
            assert json.loads(await plain.recv())["type"] == "welcome"
            await plain.send('{"type":"heartbeat","id":"h"' + " " * 2**20 + "}")
            assert json.loads(await plain.recv())["id"] == "h"
        async with connect(url, additional_headers={"Authorization": f"Bearer {token}"}) as known:
            await known.send('{"type":"hello","worker":"v"' + " " * 2**20 + "}")
            assert json.loads(await known.recv())["type"] == "welcome"


async def test_pings_of_a_client_that_reads_nothing_are_not_all_answered() -> None:
    async def accepting(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await receive()

    count, loop = 3_000, asyncio.get_running_loop()
    config = ServerConfig(accepting, HttpSettings(head_bytes=2**20))
    theirs, ours = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    line, _ = await loop.connect_accepted_socket(lambda: Connection(config, ServerState(), {}), ours)
    reader, writer = await asyncio.open_connection(sock=theirs, limit=4096)
    await Raw(reader, writer).send(UPGRADE)
    await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
    for number in range(count):
        await Raw(reader, writer).send(bytes([0x89, 0x80 | 100]) + bytes(4) + b"%0100d" % number)
    answered, last = 0, -1
    async with asyncio.timeout(PATIENCE_S):
        while last < count - 1:
            head, data = await reader.readexactly(2), await reader.readexactly(100)
            assert head == bytes([0x8A, 100])
            answered, last = answered + 1, int(data)
    assert answered < count
    line.abort()
    assert await Raw(reader, writer).end() == b""
    writer.close()


async def test_the_bounds_of_a_process_come_from_its_settings(tmp_path: Path) -> None:
    bounds = {"NOETL_HTTP_MAX_HEADER_KB": "2", "NOETL_HTTP_HEADER_SECONDS": "1"}
    with process(tmp_path, "serve", environment={**os.environ, **bounds}) as (url, _server):
        async with raw(url) as client:
            await client.send(HEAD + b"X-Some: " + b"v" * 3_000 + b"\r\n\r\n")
            assert (await client.answer())[0] == 431
        async with raw(url) as client:
            await client.send(HEAD)
            assert (await client.answer())[0] == 408


@pytest.mark.parametrize(
    "route", ["/api/execute", "/api/execute/many", "signal", "/api/dlq/replay", "/api/dlq/discard"]
)
async def test_an_idempotency_key_that_is_too_long_is_refused_and_not_cut(tmp_path: Path, route: str) -> None:
    async with listening(tmp_path) as served:
        path, started = await served.register(ONE), await served.start(WAITS)
        bodies: dict[str, Any] = {
            "/api/execute": {"path": path},
            "/api/execute/many": {"path": path, "payloads": [{}]},
            "signal": {"name": "other"},
            "/api/dlq/replay": {"all": True},
            "/api/dlq/discard": {"all": True, "reason": "r"},
        }
        where = f"/api/executions/{started}/signal" if route == "signal" else route
        problem = await served.json("POST", where, bodies[route], 400, headers={"Idempotency-Key": "k" * 201})
        assert (problem["where"], "200" in problem["detail"]) == ("header Idempotency-Key", True)
        assert (await served.http.post(where, json=bodies[route], headers={"Idempotency-Key": "k" * 200})).is_success
