"""Real connections: bodies in parts, pipelining, disconnects, shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from noetl.server.http.limits import MOST_BYTES
from tests.server.fuzzing import no_traces
from tests.server.serving import WAITS, Served, listening

pytestmark = pytest.mark.asyncio
Answer = tuple[int, dict[str, str], bytes]


def rendering(execution_id: str, template: str = "{{ 1 + 1 }}") -> bytes:
    return f'{{"execution_id":"{execution_id}","template":"{template}"}}'.encode()


class Line:
    """A connection, spoken by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *pieces: bytes) -> None:
        """Send pieces that the other side receives one by one."""
        for number, piece in enumerate(pieces):
            if number:
                await asyncio.sleep(0.02)  # so that they do not come together; were they to, nothing is tested less
            self.writer.write(piece)
            await self.writer.drain()

    async def answer(self) -> Answer:
        text = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 30)).decode("latin-1")
        first, *lines = text.removesuffix("\r\n\r\n").split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        assert len(headers) == len(lines), "a header is there twice"
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(first.split()[1]), headers, body


@asynccontextmanager
async def line(served: Served) -> AsyncIterator[Line]:
    host, port = served.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**24)
    try:
        yield Line(reader, writer)
    finally:
        writer.close()


def request(method: str, path: str, body: bytes = b"", *more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *more]
    if body or method != "GET":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def test_a_body_may_come_in_parts(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, line(served) as connection:
        body = rendering(await served.start(WAITS))
        whole = request("POST", "/context/render", body)
        cut = len(whole) - len(body)
        chunked = request("POST", "/context/render", b"", "Transfer-Encoding: chunked")
        chunked = chunked.replace(b"Content-Length: 0\r\n", b"")
        for pieces in (
            (whole[:cut], whole[cut:]),
            (whole[:10], whole[10 : cut + 5], whole[cut + 5 :]),
            (chunked + b"5\r\n" + body[:5] + b"\r\n", b"%x\r\n%b\r\n0\r\n\r\n" % (len(body) - 5, body[5:])),
            (chunked + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),),
        ):
            await connection.send(*pieces)
            assert (await connection.answer())[::2] == (200, b'{"result":2}')


async def test_a_large_body_is_taken_and_one_that_is_too_large_refused(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        async with line(served) as connection:
            started = await served.start(WAITS)
            for size in (100, 60_000, 200_000, 2_000_000):
                await connection.send(request("POST", "/context/render", rendering(started, "x" * size)))
                status, _, text = await connection.answer()
                assert (status, len(text)) == (200, size + len(b'{"result":""}'))
        async with line(served) as connection:
            head = request("POST", "/context/render").replace(b"Length: 0", b"Length: %d" % (MOST_BYTES + 1))
            await connection.send(head)
            status, headers, _ = await connection.answer()
            assert (status, headers["connection"]) == (413, "close")


async def test_requests_that_are_sent_together_are_answered_in_order(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, line(served) as connection:
        started = await served.start(WAITS)
        bodies = [rendering(started, f"{{{{ {number} + 0 }}}}") for number in range(20)]
        await connection.send(b"".join(request("POST", "/context/render", body) for body in bodies))
        answers = [(await connection.answer())[::2] for _ in bodies]
        assert answers == [(200, b'{"result":%d}' % number) for number in range(20)]


async def test_a_mistake_of_ours_is_told_without_its_insides_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> None:
        raise LookupError("inside")

    async with listening(tmp_path) as served, line(served) as connection:
        monkeypatch.setattr(served.services.lookups, "content_hash", broken)
        await connection.send(request("POST", "/api/execute", b'{"path":"x"}'))
        status, headers, body = await connection.answer()
        assert (status, headers["content-type"]) == (500, "application/problem+json")
        assert b"inside" not in body
        assert "LookupError: inside" in caplog.text


async def test_one_that_goes_away_before_its_answer_disturbs_nobody(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        path = await served.register(WAITS)
        body = f'{{"path":"{path}","wait_ms":30000}}'.encode()
        async with line(served) as gone:
            await gone.send(request("POST", "/api/execute", body))
            started = await first_started(served)
        with no_traces():
            await served.json("POST", f"/api/executions/{started}/cancel", {})
            await served.until(started, "cancelled")
            assert (await served.http.get("/ready")).status_code == 200


async def test_one_that_waits_is_answered_when_the_server_stops(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        path = await served.register(WAITS)
        async with line(served) as waiting:
            await waiting.send(request("POST", "/api/execute", f'{{"path":"{path}","wait_ms":30000}}'.encode()))
            started = await first_started(served)
            served.services.stopping.set()
            status, _, text = await waiting.answer()
            assert (status, started.encode() in text) == (201, True)


async def first_started(served: Served) -> str:
    """Wait until there is an execution; gives its id."""
    while not (found := (await served.json("GET", "/api/executions"))["executions"]):
        await asyncio.sleep(0.01)
    return str(found[0]["execution_id"])
