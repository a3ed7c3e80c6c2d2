"""Clients that read slowly or not at all, and what one token can take."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest

from noetl.server.auth.gate import LOCAL, Actor
from noetl.server.auth.quota import Quota
from noetl.server.problems import Refusal
from noetl.settings import HttpSettings, ServerSettings
from tests.server.http.test_bounds import PATIENCE_S, raw
from tests.server.http.test_limits import resident_mb
from tests.server.serving import ONE, WAITS, bearer, in_process, listening, playbook, process, secret

pytestmark = pytest.mark.asyncio
SIZE = 50 * 2**20


async def store(client: httpx.AsyncClient, data: bytes, packing: str = "none", digest: str = "") -> str:
    """Store a result as a worker does; return its address."""
    await client.post("/api/execute", json={"content": ONE})
    job = (await client.post("/queue/lease", json={"worker_id": "w"})).json()["job"]
    ref = f"noetl://execution/{job['execution_id']}/step/one/task/t/run/1/attempt/1"
    meta = {
        "store": "file",
        "bytes": len(data),
        "compression": packing,
        "sha256": digest or hashlib.sha256(data).hexdigest(),
    }
    query = {"ref": ref, "work": job["id"], "epoch": job["epoch"], "worker": "w", "meta": json.dumps(meta)}
    packed = gzip.compress(data, 1) if packing == "gzip" else data
    answer = await client.put("/api/blobs", params=query, content=packed)
    assert answer.status_code == 200, answer.text
    return ref


def connections(pid: int) -> int:
    """Return the number of TCP connections that a process has accepted."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            inodes.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[3] != "0A" and f"socket:[{row[9]}]" in inodes for row in rows)


async def test_twenty_readers_of_a_large_result_that_take_nothing_are_cut(tmp_path: Path) -> None:
    with process(tmp_path, "serve", environment={"NOETL_HTTP_READER_SECONDS": "2"}) as (url, server):
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as client:
            ref = await store(client, bytes(SIZE))
        before = resident_mb(server.pid)
        ask = f"GET /api/results/resolve?{urlencode({'ref': ref})} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        async with AsyncExitStack() as stack:
            readers = [await stack.enter_async_context(raw(url)) for _ in range(20)]
            for reader in readers:
                await reader.send(ask)
            for reader in readers:
                head = await asyncio.wait_for(reader.reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
                assert b"content-length: %d\r\n" % SIZE in head
            async with asyncio.timeout(PATIENCE_S):
                while connections(server.pid):  # nothing is read meanwhile
                    await asyncio.sleep(0.1)
            for reader in readers:
                assert len(await reader.end()) < SIZE
        assert resident_mb(server.pid) - before < 200  # four for each, not fifty


@pytest.mark.parametrize("packing", ["none", "gzip"])
async def test_a_stored_result_is_read_whole_and_by_range(tmp_path: Path, packing: str) -> None:
    data = b"".join(b"%08d" % number for number in range(1_100_000))  # of several pieces
    async with in_process(tmp_path) as served:
        ref = await store(served.http, data, packing)
        assert (await served.http.get("/api/results/resolve", params={"ref": ref})).content == data
        for start, length in ((0, 10), (5, None), (2**22 - 3, 7), (2**22, 2**22), (len(data) - 1, 5), (len(data), 1)):
            query = {"ref": ref, "start": str(start)} | ({} if length is None else {"length": str(length)})
            answer = await served.http.get("/api/results/resolve", params=query)
            end = None if length is None else start + length
            assert answer.content == data[start:end], (start, length)
            assert answer.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize("packing", ["none", "gzip"])
async def test_a_damaged_result_is_not_served(tmp_path: Path, packing: str) -> None:
    async with in_process(tmp_path) as served:
        ref = await store(served.http, bytes(9 * 2**20), packing, digest="0" * 64)
        answer = await served.http.get("/api/results/resolve", params={"ref": ref})
        assert (answer.status_code, "damaged" in answer.text) == (404, True)


async def test_one_token_cannot_take_all_streams(tmp_path: Path) -> None:
    one, two, admin = [await secret(tmp_path, role, role) for role in ("viewer", "operator", "admin")]
    settings = ServerSettings(auth="token", http=HttpSettings(streams=6, token_streams=4))
    async with listening(tmp_path, settings) as served, AsyncExitStack() as stack:
        started = await served.json("POST", "/api/execute", {"content": WAITS}, headers=bearer(admin))
        path = f"/api/executions/{started['execution_id']}/events/stream"

        async def status(token: str) -> tuple[int, str]:
            answer = await stack.enter_async_context(served.http.stream("GET", path, headers=bearer(token)))
            return answer.status_code, answer.headers.get("retry-after", "")

        assert [await status(one) for _ in range(4)] == [(200, "")] * 4
        assert await status(one) == (429, "5")
        assert [await status(two) for _ in range(2)] == [(200, "")] * 2
        assert await status(admin) == (503, "5")
        await stack.aclose()
        async with asyncio.timeout(PATIENCE_S):
            while (await status(admin))[0] != 200:
                await stack.aclose()


async def test_large_answers_count_until_they_are_read(tmp_path: Path) -> None:
    large = {"text": "x" * 300_000}
    token = await secret(tmp_path, "admin")
    settings = ServerSettings(auth="token", http=HttpSettings(answer_bytes=2**21, reader_s=60))
    async with listening(tmp_path, settings) as served, AsyncExitStack() as stack:
        text = playbook("  - step: ask\n    tool: {kind: wait, signal: go}\n", workload=large)
        started = await served.json("POST", "/api/execute", {"content": text}, headers=bearer(token))
        path = f"/api/executions/{started['execution_id']}"
        lines = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        before = await served.json("GET", path, headers=bearer(token))
        assert before["workload"] == large
        held = [served.services.answers.take(Actor("a", "admin", token.split("_")[1]), 2**20)]
        refused = await served.json("GET", path, None, 429, headers=bearer(token))
        assert refused["retry_after_s"]
        body = {"execution_id": started["execution_id"], "template": large["text"]}
        done = await served.json("POST", "/context/render", body, 200, headers=bearer(token))  # not a GET: it was done
        assert done["result"] == large["text"]
        held.pop()()
        client = await stack.enter_async_context(raw(served.url))
        await client.send(lines)
        assert (await client.answer())[2]["workload"] == large


async def test_a_quota_has_a_bound_for_all_and_one_for_each_token() -> None:
    quota = Quota(10, 5, "things")
    one, two = Actor("one", "viewer", "1"), Actor("two", "viewer", "2")
    release = quota.take(one, 5)
    with pytest.raises(Refusal) as refused:
        quota.take(one)
    assert refused.value.problem.status == 429
    quota.take(two, 3)
    quota.take(LOCAL, 2)
    with pytest.raises(Refusal) as refused:
        quota.take(two, 1)
    assert refused.value.problem.status == 503
    release()
    quota.take(one, 5)
    Quota(10, 5, "things").take(one, 50)  # the first may be larger than the bound


@pytest.mark.parametrize("size", [3_000, 300_000], ids=["whole", "pieces"])
async def test_json_is_compressed_for_clients_that_take_it(tmp_path: Path, size: int) -> None:
    async with listening(tmp_path) as served:
        path = f"/api/executions/{await served.start(ONE, payload={'n': 'a' * size})}"
        plain = await served.http.get(path, headers={"Accept-Encoding": "identity"})
        zipped = await served.http.get(path, headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in plain.headers
        assert (zipped.headers["content-encoding"], zipped.headers["vary"]) == ("gzip", "Accept-Encoding")
        assert zipped.json()["workload"] == plain.json()["workload"] == {"n": "a" * size}
        assert zipped.num_bytes_downloaded * 5 < plain.num_bytes_downloaded
        small = await served.http.get("/health", headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in small.headers
