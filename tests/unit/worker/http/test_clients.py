"""HTTP client of a worker: redirects, proxies, certificates, limits of a body."""

from __future__ import annotations

import asyncio
import gzip
import resource
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from noetl.ports.web import WebClient, WebError, WebRequest, WebResponse
from noetl.worker.http.clients import HttpClient
from tests.certificates import self_signed
from tests.tools.web import Web

pytestmark = pytest.mark.asyncio
MB = 1 << 20
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEADS: list[bytes] = []  # of the requests to the last server


@pytest_asyncio.fixture
async def clients() -> AsyncIterator[HttpClient]:
    made = HttpClient()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def client(clients: HttpClient) -> WebClient:
    return clients.get()


@asynccontextmanager
async def answered(client: WebClient, answer: Answer) -> AsyncIterator[WebResponse]:
    """The response of a server that answers so."""
    async with serving(answer) as port, client.send(WebRequest(url=f"http://127.0.0.1:{port}/")) as response:
        yield response


async def read(client: WebClient, url: str, **fields: Any) -> tuple[int, bytes | None]:
    async with client.send(WebRequest(url=url, **fields)) as response:
        return response.status, await response.read(MB)


@asynccontextmanager
async def serving(answer: Answer, certificates: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that answers each connection by a function; gives its port."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            HEADS.append(await reader.readuntil(b"\r\n\r\n"))
            await answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    HEADS.clear()
    server = await asyncio.start_server(one, "127.0.0.1", 0, ssl=certificates)
    async with server:
        yield server.sockets[0].getsockname()[1]


def said(head: str, *parts: bytes) -> Answer:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {head}\r\n\r\n".encode())
        for part in parts:
            writer.write(part)
            await writer.drain()

    return answer


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "GET", "GET"), (301, "POST", "GET"), (301, "PUT", "PUT"),
        (302, "POST", "GET"), (302, "DELETE", "DELETE"),
        (303, "GET", "GET"), (303, "POST", "GET"), (303, "PUT", "GET"), (303, "DELETE", "GET"),
        (307, "POST", "POST"), (308, "POST", "POST"), (308, "PATCH", "PATCH"),
    ],
)  # fmt: skip
async def test_a_redirect_keeps_method_and_body_or_becomes_get(
    web: Web, client: WebClient, status: int, method: str, then: str
) -> None:
    async with serving(said(f"{status} Elsewhere\r\nLocation: {web.url}/json\r\nContent-Length: 0")) as port:
        body = b"rest" if method != "GET" else None
        headers = {"Content-Type": "text/x"} if body else {}
        url = f"http://127.0.0.1:{port}/x"
        assert (await read(client, url, method=method, content=body, headers=headers))[0] == 200
    (asked,) = web.asked
    assert (asked.method, asked.body) == (then, (body or b"") if then == method else b"")
    assert ("content-type" in asked.headers) == (then == method and bool(body))


async def test_redirects_end(web: Web, client: WebClient) -> None:
    web.headers["/round"] = {"Location": "/round"}
    with pytest.raises(WebError, match="more than 20 times") as caught:
        await read(client, f"{web.url}/round")
    assert (caught.value.name, len(web.asked)) == ("TooManyRedirects", 21)


@pytest.mark.parametrize("place", ["ftp://example.com/x", "file:///etc/passwd", "http://[::1", "javascript:0"])
async def test_a_redirect_leads_to_web_servers_only(web: Web, client: WebClient, place: str) -> None:
    web.headers["/away"] = {"Location": place}
    with pytest.raises(WebError, match="redirected to what is no URL"):
        await read(client, f"{web.url}/away")


async def test_a_redirect_to_another_scheme_carries_no_header_of_the_task(
    clients: HttpClient, web: Web, tmp_path: Path
) -> None:
    async with serving(said("200 OK\r\nContent-Length: 0"), self_signed(tmp_path)[0]) as port:
        web.headers["/away"] = {"Location": f"https://127.0.0.1:{port}/x"}
        given = {"Authorization": "abc", "X-Api-Key": "k", "Accept": "text/x"}
        assert (await read(clients.get(verify=False), f"{web.url}/away", headers=given))[0] == 200
    assert {"authorization", "x-api-key"} <= set(web.asked[0].headers)
    (head,) = HEADS
    assert b"text/x" in head
    assert b"abc" not in head
    assert b"x-api-key" not in head.lower()


async def test_certificates_are_trusted_as_the_request_says(clients: HttpClient, tmp_path: Path) -> None:
    context, file = self_signed(tmp_path)
    async with serving(said("200 OK\r\nContent-Length: 2", b"ok"), context) as port:
        url = f"https://127.0.0.1:{port}/x"
        with pytest.raises(WebError, match="CERTIFICATE_VERIFY_FAILED") as caught:
            await read(clients.get(), url)
        assert (caught.value.name, caught.value.sent) == ("ConnectError", False)
        assert await read(clients.get(verify=False), url) == (200, b"ok")
        assert await read(clients.get(file.read_bytes()), url) == (200, b"ok")


async def test_a_user_in_the_url_is_a_header_and_nowhere_else(web: Web, client: WebClient) -> None:
    url = web.url.replace("http://", "http://ada:p%40ss@") + "/json"
    async with client.send(WebRequest(url=url)) as response:
        assert response.url == f"{web.url}/json"
    assert web.asked[0].headers["authorization"] == "Basic YWRhOnBAc3M="
    await read(client, url, headers={"authorization": "Bearer t"})
    assert web.asked[1].headers["authorization"] == "Bearer t"


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/a%2Fb/%7Euser?sig=a%2bb%3D&x=%7e", "/a%2Fb/%7Euser?sig=a%2bb%3D&x=%7e"),  # signed: not a byte is changed
        ("/a/../b", "/a/../b"),
        ("/grüße?q=ä b", "/gr%C3%BC%C3%9Fe?q=%C3%A4+b"),
        ("/50%", "/50%25"),
        ("?x=1#part", "/?x=1"),
    ],
)
async def test_a_url_is_sent_as_it_is_written(web: Web, client: WebClient, path: str, sent: str) -> None:
    await read(client, web.url + path)
    assert web.asked[0].path == sent


async def test_parameters_replace_those_of_the_url(web: Web, client: WebClient) -> None:
    await read(client, f"{web.url}/json?a=1&b=2", params=[("b", "3"), ("b", "4"), ("c", "x y&z")])
    assert web.asked[0].path == "/json?a=1&b=3&b=4&c=x+y%26z"


async def test_headers_of_the_same_name_are_one_value(client: WebClient) -> None:
    async with answered(client, said("200 OK\r\nLink: a\r\nLINK: b\r\nContent-Length: 0")) as response:
        assert response.headers["link"] == "a, b"


@pytest.mark.parametrize("header", ["a\r\nX-More: 1", "a\nb", "a\0b"])
async def test_a_header_holds_one_line(web: Web, client: WebClient, header: str) -> None:
    with pytest.raises(ValueError, match="header"):
        await read(client, f"{web.url}/json", headers={"X-Given": header})
    assert web.asked == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
async def test_a_request_is_sent_once(web: Web, client: WebClient, method: str) -> None:
    with pytest.raises(WebError) as caught:
        await read(client, f"{web.url}/drop", method=method)
    assert (caught.value.sent, len(web.asked)) == (True, 1)


async def test_requests_go_through_the_proxy_of_the_environment(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", web.url.replace("http://", "http://ada:pw@"))
    monkeypatch.setenv("no_proxy", "localhost")
    clients = HttpClient()
    assert await read(clients.get(), "http://api.example.com/orders?page=2") == (200, b'{"n": 1}')
    await read(clients.get(), web.url.replace("127.0.0.1", "localhost") + "/direct")
    await clients.close()
    assert [asked.path for asked in web.asked] == ["http://api.example.com/orders?page=2", "/direct"]
    assert web.asked[0].headers["proxy-authorization"] == "Basic YWRhOnB3"


def bomb(size: int) -> list[bytes]:
    """Zeros, compressed a thousand times; after a full flush each block is the same."""
    packer = zlib.compressobj(wbits=31)
    first, block = (packer.compress(bytes(MB)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return [first, *[block] * (size // MB - 1)]  # no end: it is never reached


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def test_a_body_that_grows_when_it_is_read_is_cut_off(client: WebClient) -> None:
    packed = b"".join(bomb(1024 * MB))
    head = f"200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}"
    before = peak_mb()
    async with answered(client, said(head, packed)) as response:
        assert await response.read(8 * MB) is None
    assert peak_mb() - before < 100


async def test_five_gigabytes_are_refused_before_they_are_read(client: WebClient) -> None:
    async with answered(client, said(f"200 OK\r\nContent-Length: {5 * 1024 * MB}", bytes(MB))) as response:
        assert await response.read(64 * MB) is None


async def test_a_reader_that_waits_holds_back_the_sender(client: WebClient) -> None:
    sent = 0

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while True:
            writer.write(bytes(65_536))
            await writer.drain()
            sent += 65_536

    async with answered(client, endless):
        before = -1
        while sent > before:
            before = sent
            await asyncio.sleep(0.3)
    assert sent < 32 * MB


async def test_a_body_that_stops_is_a_time_out(client: WebClient) -> None:
    async def dripping(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx")
        await asyncio.sleep(60)

    async with serving(dripping) as port:
        with pytest.raises(WebError) as caught:
            await read(client, f"http://127.0.0.1:{port}/", read_s=0.1)
    assert (caught.value.name, caught.value.timed_out, caught.value.sent) == ("ReadTimeout", True, True)


async def test_a_host_that_does_not_answer_is_a_time_out(client: WebClient) -> None:
    with pytest.raises(WebError) as caught:
        async with asyncio.timeout(20):
            await read(client, "http://127.0.0.1:1", connect_s=0.000_001)
    assert caught.value.name in ("ConnectTimeout", "ConnectError")
    assert not caught.value.sent


@pytest.mark.parametrize(
    ("head", "body", "name"),
    [
        ("200 OK\r\nContent-Length: 100", b"short", "RemoteProtocolError"),
        ("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4", b"junk", "DecodingError"),
        ("nonsense", b"", "RemoteProtocolError"),
        ("200 OK\r\nTransfer-Encoding: chunked", b"zz\r\n", "RemoteProtocolError"),
        (f"200 OK\r\nX-Long: {'x' * 100_000}", b"", "RemoteProtocolError"),
        ("200 OK\r\nContent-Length: -4", b"", "RemoteProtocolError"),
    ],
)
async def test_an_answer_that_is_none_is_an_error(client: WebClient, head: str, body: bytes, name: str) -> None:
    async with serving(said(head, body)) as port:
        with pytest.raises(WebError) as caught:
            await read(client, f"http://127.0.0.1:{port}/")
    assert (caught.value.name, caught.value.sent) == (name, True)


async def test_a_compressed_body_is_read(client: WebClient) -> None:
    packed = gzip.compress(b"text")
    async with serving(said(f"200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}", packed)) as port:
        assert await read(client, f"http://127.0.0.1:{port}/") == (200, b"text")
