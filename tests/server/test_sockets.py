"""Sessions over the server's own WebSocket: messages in one piece, in parts, many at once, and too large ones."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from noetl.server.sessions import PATH
from tests.server.serving import listening

pytestmark = pytest.mark.asyncio
HELLO = b'{"type":"hello","worker":"w","acks":false}'
BEATS = 600  # more than are served at once


def beat(number: int) -> bytes:
    return b'{"type":"heartbeat","id":"%d"}' % number


async def test_messages_in_parts_and_as_text_are_read_too(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, connect("ws" + served.url.removeprefix("http") + PATH) as socket:
        await socket.send([HELLO[:5], HELLO[5:]])
        assert b'"welcome"' in await socket.recv(decode=False)
        await socket.send(beat(1).decode())
        await socket.send([beat(2)[:3], beat(2)[3:9], beat(2)[9:]])
        await socket.send(beat(3))
        pong = await socket.ping()
        await pong
        answers = [await socket.recv(decode=False) for _ in range(3)]
        assert [b'"id":"%d"' % number in answer for number, answer in enumerate(answers, 1)] == [True] * 3


async def test_more_messages_than_are_served_at_once_all_get_their_answer(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, connect("ws" + served.url.removeprefix("http") + PATH) as socket:
        await socket.send(HELLO)
        await socket.recv()
        for number in range(BEATS):
            await socket.send(beat(number))
        answers = {await socket.recv(decode=False) for _ in range(BEATS)}
        assert len(answers) == BEATS


async def test_a_message_that_is_too_large_ends_the_session(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, connect("ws" + served.url.removeprefix("http") + PATH) as socket:
        await socket.send(HELLO)
        await socket.recv()
        with suppress(ConnectionClosed):  # it may end before all is sent
            await socket.send(b" " * (17 * 1024 * 1024))
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 1009
