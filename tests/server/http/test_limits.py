"""Bodies too large, too deep, too many, bombs: refused in bounded memory."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

from noetl.model import plain_data
from noetl.model.refs import MOST_BYTES
from noetl.server.api import endpoints
from noetl.server.http.limits import (
    MOST_DEPTH,
    MOST_EXTREME,
    count_extremes,
    exceeds_depth,
    outside_texts,
    square_brackets,
)
from tests.server.serving import ONE, in_process, process

INGEST = [one for one in endpoints() if one.body is not None]
TEMPLATES = (
    "{{ 'x' * 10**10 }}",
    "{{ 10 ** (10 ** 10) }}",
    "{{ range(10**12) | list }}",
    "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
    "{{ '%01000000000d' | format(1) }}",
    "{{ 'x' | center(10**10) }}",
    "{{ ('a' * 50000) | replace('a', 'b' * 50000) }}",
    "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
    "{{ [1] * 10**9 }}",
)
JSON = {"Content-Type": "application/json"}
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the process is gone")


async def hundred_mb() -> AsyncIterator[bytes]:
    for _ in range(100):
        yield b"[" + b" " * (1024 * 1024 - 1)


async def announced(url: str, method: str, path: str) -> bytes:
    """Announce a large body and send none of it; gives the status."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {100 * 2**20}\r\n\r\n"
    writer.write(head.encode())
    line = await asyncio.wait_for(reader.readline(), 30)
    writer.close()
    return line.split()[1]


async def huge_frame(url: str) -> None:
    """Send a session more than it takes, and wait for the answer."""
    async with connect(url.replace("http", "ws") + "/api/worker/session") as socket:
        await socket.send("[" * 100 * 2**20)
        await socket.recv()


@pytest.mark.asyncio
async def test_huge_bodies_and_bombs_are_refused_in_bounded_memory(tmp_path: Path) -> None:
    with process(tmp_path, "serve") as (url, server):
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            assert (await client.get("/health")).status_code == 200
            before = resident_mb(server.pid)
            for endpoint in INGEST:
                path = re.sub(r"{\w+}", "1", endpoint.path)
                answer = await client.request(endpoint.method, path, content=hundred_mb(), headers=JSON)
                assert answer.status_code == 413, (path, answer.text)
                assert await announced(url, endpoint.method, path) == b"413"
            for content in (BOMB, "a: " + "[" * 100_000, "a: " + "{" * 50_000, "x" * 1_000_000, "- " * 200_000):
                for path in ("/api/catalog", "/api/execute"):
                    answer = await client.post(path, json={"content": content})
                    assert answer.status_code in (413, 422), answer.text[:300]
            started = (await client.post("/api/execute", json={"content": ONE})).json()["execution_id"]
            for template in TEMPLATES:
                answer = await client.post("/context/render", json={"execution_id": started, "template": template})
                assert answer.status_code == 422, (template, answer.text[:300])
            for many in (b"[]," * 1_500_000 + b"[]", b"[" * 60 + b"]" * 60 + (b"," + b"[" * 60 + b"]" * 60) * 50_000):
                body = b'{"path":"x","payload":{"a":[' + many + b"]}}"
                answer = await client.post("/api/execute", content=body, headers=JSON)
                assert answer.status_code == 413
            with pytest.raises(ConnectionClosedError):
                await huge_frame(url)
            grown = resident_mb(server.pid) - before
            assert grown < 150
            assert (await client.get("/ready")).status_code == 200


async def zeros(megabytes: int) -> AsyncIterator[bytes]:
    for _ in range(megabytes):
        yield bytes(1024 * 1024)


@pytest.mark.asyncio
@pytest.mark.parametrize("store", ["db", "file"])
async def test_a_large_result_goes_through_the_server_in_bounded_memory(tmp_path: Path, store: str) -> None:
    size = MOST_BYTES // 2**20
    with process(tmp_path, "serve", environment={"NOETL_LEASE_SECONDS": "3600"}) as (url, server):
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            await client.post("/api/execute", json={"content": ONE})
            leased = (await client.post("/queue/lease", json={"worker_id": "w"})).json()["job"]
            ref = f"noetl://execution/{leased['execution_id']}/step/one/task/t/run/1/attempt/1"
            meta = json.dumps({"store": store, "bytes": MOST_BYTES})
            query = {"ref": ref, "work": leased["id"], "epoch": leased["epoch"], "worker": "w", "meta": meta}
            before = resident_mb(server.pid)
            answer = await client.put("/api/blobs", params=query, content=zeros(size))
            assert answer.status_code == 200, answer.text
            got = 0
            async with client.stream("GET", "/api/blobs", params=query) as reading:
                async for piece in reading.aiter_raw():
                    got += len(piece)
            assert got == MOST_BYTES
            assert resident_mb(server.pid) - before < 100
            for long in (zeros(size + 2), zeros(4 * size)):
                answer = await client.put("/api/blobs", params=query, content=long)
                assert answer.status_code == 413, answer.text
            assert (await client.get("/ready")).status_code == 200


@pytest.mark.asyncio
async def test_what_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        path = await served.register(ONE)
        for depth, status in ((MOST_DEPTH - 4, 201), (MOST_DEPTH + 1, 400), (5_000, 400), (200_000, 400)):
            body = f'{{"path":"{path}","payload":{{"n":' + "[" * depth + "]" * depth + "}}"
            answer = await served.http.post("/api/execute", content=body.encode())
            assert answer.status_code == status, answer.text[:300]


def test_depth_is_counted() -> None:
    data: object = 1
    for _ in range(10):
        data = [data]
    assert not plain_data.is_deeper(data, 11)
    assert plain_data.is_deeper(data, 9)


TEXTS = st.text(alphabet='[]{}"\\\n,:é', max_size=8)
VALUES = st.recursive(
    st.one_of(st.none(), TEXTS, st.integers()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=30,
)


@given(VALUES, st.integers(0, 6), st.booleans())
def test_the_depth_of_json_is_counted_without_decoding_it(data: object, most: int, is_ascii: bool) -> None:
    raw = json.dumps(data, ensure_ascii=is_ascii).encode()
    assert exceeds_depth(square_brackets(raw), most) == plain_data.is_deeper(data, most)


@pytest.mark.asyncio
@pytest.mark.parametrize("number", ["1e308", "-1E-320", "0.5e+0300", "9007199254740993e291"])
async def test_numbers_that_are_slow_to_decode_are_few(tmp_path: Path, number: str) -> None:
    many = ",".join([number] * (MOST_EXTREME + 1))
    async with in_process(tmp_path) as served:
        path = await served.register(ONE)
        body = f'{{"path":"{path}","payload":{{"n":[{many}]}}}}'
        answer = await served.http.post("/api/execute", content=body.encode())
        assert answer.status_code == 413, answer.text[:300]
        assert "exponent of three digits" in answer.text
        content = ONE.replace('{"n":1}', f"{{n: 1, more: [{many}]}}")
        answer = await served.http.post("/api/catalog", json={"content": content})
        assert answer.status_code == 413, answer.text[:300]
        texts = f'{{"path":"{path}","payload":{{"n":"{many}"}}}}'
        assert (await served.http.post("/api/execute", content=texts.encode())).status_code == 201


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)), st.booleans())
def test_numbers_are_counted_outside_of_texts(numbers: list[float], is_indented: bool) -> None:
    extremes = [n for n in numbers if abs(n) >= 1e100 or 0 < abs(n) < 1e-99]
    raw = json.dumps([numbers, '1e300, \\"1e300', numbers], indent=1 if is_indented else None).encode()
    assert count_extremes(outside_texts(raw)) == 2 * len(extremes)


def test_numbers_with_zeros_before_their_exponent_are_not_extreme() -> None:
    assert count_extremes(b"[1.5e-005,2.25E+004,1e99]") == 0
