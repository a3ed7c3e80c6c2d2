"""Requests over real connections: in one piece, in many, one after the other at once; answers are the same the short way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from noetl.server import connections
from noetl.server.app import app
from noetl.server.limits import MOST_BYTES
from tests.server.fuzzing import asked, no_traces
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


def without_date(answer: Answer) -> Answer:
    status, headers, body = answer
    return status, {name: value for name, value in headers.items() if name not in ("date", "server")}, body


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/executions", b""),
        ("POST", "/context/render", b""),
        ("POST", "/context/render", b"{"),
        ("POST", "/api/execute", b'{"path":"nowhere"}'),
        ("GET", "/api/openapi.json", b""),
        ("DELETE", "/api/execute", b""),
        ("GET", "/nowhere", b""),
    ],
)
async def test_an_answer_is_the_same_the_short_way_and_the_long_way(
    tmp_path: Path, method: str, path: str, body: bytes
) -> None:
    async with listening(tmp_path) as served, line(served) as connection:
        body = body or (rendering(await served.start(WAITS)) if path == "/context/render" else b"")
        long = await asked(app(served.services), method, path, body)
        await connection.send(request(method, path, body))
        assert without_date(await connection.answer()) == long
        await connection.send(request(method, path, body, "Connection: close"))
        status, headers, text = without_date(await connection.answer())
        assert headers.pop("connection") == "close"
        assert (status, headers, text) == long
        assert await connection.reader.read() == b""


async def test_a_whole_request_is_read_and_answered_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def long(*_: Any) -> None:
        raise AssertionError("the long way")

    async with listening(tmp_path) as served, line(served) as connection:
        body = rendering(await served.start(WAITS))
        monkeypatch.setattr(RequestResponseCycle, "send", long)
        monkeypatch.setattr(RequestResponseCycle, "receive", long)
        for _ in range(3):
            await connection.send(request("POST", "/context/render", body))
            status, headers, text = await connection.answer()
            assert (status, text) == (200, b'{"result":2}')
            assert "date" in headers


async def test_connections_that_are_made_otherwise_are_served_the_long_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(tmp_path) as served, line(served) as connection:
        whole = request("POST", "/context/render", rendering(await served.start(WAITS)))
        await connection.send(whole)
        short = without_date(await connection.answer())
        monkeypatch.setattr(connections, "_KNOWN", None)
        await connection.send(whole)
        assert without_date(await connection.answer()) == short


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


async def test_whoever_asks_first_is_told_to_go_on(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, line(served) as connection:
        body = rendering(await served.start(WAITS))
        whole = request("POST", "/context/render", body, "Expect: 100-continue")
        await connection.send(whole[: -len(body)])
        assert (await connection.answer())[0] == 100
        await connection.send(body)
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


async def test_a_look_at_the_head_alone_and_the_older_protocol_are_served(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, line(served) as connection:
        connection.writer.write(request("HEAD", "/health").replace(b"Content-Length: 0\r\n", b""))
        first = await asyncio.wait_for(connection.reader.readuntil(b"\r\n\r\n"), 30)
        assert first.startswith(b"HTTP/1.1 200")
        await connection.send(request("GET", "/health").replace(b"HTTP/1.1", b"HTTP/1.0"))
        status, headers, body = await connection.answer()
        assert (status, headers["connection"], body[:1]) == (200, "close", b"{")


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
