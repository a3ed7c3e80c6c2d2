"""A link by WebSocket to a server that cuts its frames where it likes."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from hashlib import sha1
from typing import Any

import msgspec
import pytest

from noetl.client.links import open_socket
from noetl.wire.frames import binary
from noetl.wire.session import Hello, Stop, Welcome
from tests.server.serving import happens

pytestmark = pytest.mark.asyncio
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of every WebSocket


@pytest.mark.parametrize("cut", [1, 5, 30])
async def test_a_frame_that_begins_with_the_welcome_and_ends_later_is_taken_whole(cut: int) -> None:
    later, over = asyncio.Event(), asyncio.Event()
    said = [Stop(("x" * 40,), str(number)) for number in range(2)]
    first, second = (binary(msgspec.json.encode(stop), masked=False) for stop in said)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        [key] = [line.split(b": ")[1] for line in asked.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key")]
        accepted = b64encode(sha1(key + _MAGIC, usedforsecurity=False).digest())
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
        writer.write(b"Sec-WebSocket-Accept: " + accepted + b"\r\n\r\n")
        await reader.read(1)  # the hello has begun
        writer.write(binary(msgspec.json.encode(Welcome("w", "s", 1_000, 300)), masked=False) + first[:cut])
        await later.wait()
        writer.write(first[cut:] + second)
        await over.wait()
        writer.close()

    received: list[Any] = []
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        link = await open_socket(f"http://127.0.0.1:{port}", None, Hello("w"), received.append)
        later.set()
        await happens(lambda: len(received) == 2, "both frames")
        assert received == said
        over.set()
        await link.close()
