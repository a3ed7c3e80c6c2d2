"""A revoked token keeps nothing open, on any server of its store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from noetl.clock import SteadyClock
from noetl.server.auth.gate import create_token
from noetl.server.auth.revocation import Revocation, TokenEnded
from noetl.settings import ServerSettings, Settings
from noetl.stores.memory.team import MemoryTeam
from noetl.wire.session import Claim, Heartbeat, Refused, Stop
from noetl.wiring.embedded import open_store, open_team
from tests.server.serving import WAITS, Served, bearer, listening, session
from tests.services import postgres

LONG_S = 25.0  # longer than any assertion here waits
SOON_S = 15.0
TOKEN = ServerSettings(auth="token")


@dataclass(frozen=True)
class Pair:
    """Two servers on one database; `revoke` ends a token at the first."""

    one: Served
    two: Served
    admin: str
    tokens: dict[str, tuple[str, str]]  # by role: id, secret

    async def revoke(self, role: str) -> None:
        await self.one.json("DELETE", f"/api/tokens/{self.tokens[role][0]}", headers=bearer(self.admin))

    def bearer(self, role: str) -> dict[str, str]:
        return bearer(self.tokens[role][1])


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres() as address:
        yield address


@asynccontextmanager
async def servers(folder: Path, database: str) -> AsyncIterator[Pair]:
    store = open_store(Settings(folder / "noetl.db", database=database))
    team, made = open_team(store), {}
    for role in ("admin", "operator", "viewer", "worker"):
        token, found = create_token(role, role, None, None, "test", 1)
        await team.add_token(token)
        made[role] = (token.token_id, found)
    async with (
        listening(folder, TOKEN, database=database) as one,
        listening(folder, TOKEN, database=database) as two,
    ):
        one.http.headers.update(bearer(made["admin"][1]))
        yield Pair(one, two, made["admin"][1], made)
    await store.close()


@pytest.mark.asyncio
async def test_a_revocation_ends_a_workers_session_on_another_server(tmp_path: Path, database: str) -> None:
    async with servers(tmp_path, database) as pair:
        other = pair.tokens["admin"][1]
        async with (
            session(pair.two, "w", token=pair.tokens["worker"][1], pools=("idle",)) as worker,
            session(pair.two, "stays", token=other) as stays,
        ):
            assert isinstance(await worker.ask(Heartbeat()), Stop)
            await worker.send(Claim("c", wait_s=LONG_S))
            await pair.revoke("worker")
            async with asyncio.timeout(SOON_S):
                answer = await worker.receive()
                assert isinstance(answer, Refused), answer
                assert answer.problem["status"] == 401
                with pytest.raises(ConnectionClosed) as closed:
                    await worker.receive()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008
            assert isinstance(await stays.ask(Heartbeat()), Stop)


async def follow(pair: Pair, path: str, role: str, begun: asyncio.Event) -> str:
    """Read a stream of the second server to its end."""
    text = ""
    async with pair.two.http.stream("GET", path, headers=pair.bearer(role)) as answer:
        assert answer.status_code == 200
        begun.set()
        async for piece in answer.aiter_text():
            text += piece
    return text


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/api/executions/{}/events/stream", "/api/executions/stream"])
async def test_a_revocation_ends_a_stream_on_another_server(tmp_path: Path, database: str, path: str) -> None:
    async with servers(tmp_path, database) as pair:
        execution_id, begun = await pair.one.start(WAITS), asyncio.Event()
        reading = asyncio.create_task(follow(pair, path.format(execution_id), "viewer", begun))
        await begun.wait()
        await pair.revoke("viewer")
        async with asyncio.timeout(SOON_S):
            assert "event: end" not in await reading


@pytest.mark.asyncio
async def test_a_revocation_ends_a_download_on_another_server(tmp_path: Path, database: str) -> None:
    async with servers(tmp_path, database) as pair:
        path, text = await pair.one.register(WAITS), "x" * 7_000_000
        body = {"path": path, "payload": {"text": text}}
        started = (await pair.one.json("POST", "/api/execute", body, headers=bearer(pair.admin)))["execution_id"]
        url, held = httpx.URL(pair.two.url), pair.two.services.gate._revocation._held
        reader, writer = await asyncio.open_connection(url.host, url.port, limit=1_000)
        token = pair.bearer("viewer")["Authorization"]
        writer.write(
            f"GET /api/executions/{started} HTTP/1.1\r\nHost: {url.host}\r\nAuthorization: {token}\r\n\r\n".encode()
        )
        assert b" 200 " in await reader.readline()
        async with asyncio.timeout(SOON_S):
            assert pair.tokens["viewer"][0] in held
            await pair.revoke("viewer")
            while pair.tokens["viewer"][0] in held:
                await asyncio.sleep(0.01)
            assert len(await reader.read()) < len(text)
        writer.close()


async def claim(pair: Pair) -> httpx.Response:
    headers = pair.bearer("worker")
    await pair.two.json("POST", "/api/worker/hello", {"worker": "w", "pools": ["idle"]}, headers=headers)
    body = {"id": "c", "worker": "w", "wait_s": LONG_S}
    return await pair.two.http.post("/api/worker/claim", json=body, headers=headers)


async def execute(pair: Pair) -> httpx.Response:
    path = await pair.one.register(WAITS)
    body = {"path": path, "wait_ms": int(LONG_S * 1000)}
    return await pair.two.http.post("/api/execute", json=body, headers=pair.bearer("operator"))


async def execute_many(pair: Pair) -> httpx.Response:
    path = await pair.one.register(WAITS)
    body = {"path": path, "payloads": [{}, {}], "wait_ms": int(LONG_S * 1000)}
    return await pair.two.http.post("/api/execute/many", json=body, headers=pair.bearer("operator"))


async def upload(pair: Pair) -> httpx.Response:
    """Send half of a body, and read the answer that comes before the rest."""
    url = httpx.URL(pair.two.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    head = f"POST /api/execute HTTP/1.1\r\nHost: {url.host}\r\nContent-Length: 100\r\nConnection: close\r\n"
    head += f"Authorization: {pair.bearer('operator')['Authorization']}\r\n\r\n"
    writer.write(head.encode() + b'{"path": ')
    answer = await reader.read()
    writer.close()
    head, _, body = answer.decode().partition("\r\n\r\n")
    return httpx.Response(int(head.split()[1]), text=body)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("asked", "role"), [(claim, "worker"), (execute, "operator"), (execute_many, "operator"), (upload, "operator")]
)
async def test_a_revocation_ends_a_call_that_waits_on_another_server(
    tmp_path: Path, database: str, asked: Callable[[Pair], Awaitable[httpx.Response]], role: str
) -> None:
    async with servers(tmp_path, database) as pair:
        held: dict[str, Any] = pair.two.services.gate._revocation._held
        waiting = asyncio.ensure_future(asked(pair))
        async with asyncio.timeout(SOON_S):
            while pair.tokens[role][0] not in held:
                assert not waiting.done(), waiting.result().text
                await asyncio.sleep(0.01)
            await pair.revoke(role)
            answer = await waiting
        assert (answer.status_code, answer.json()["type"]) == (401, "about:blank#unauthorised")


@pytest.mark.asyncio
async def test_an_expired_token_ends_what_it_keeps_open() -> None:
    clock, team = SteadyClock(), MemoryTeam()
    token, _ = create_token("viewer", "v", 1, None, "test", clock.now())
    await team.add_token(token)
    revocation = Revocation(team, clock)
    looking = asyncio.create_task(revocation.run())
    try:
        async with asyncio.timeout(SOON_S):
            with pytest.raises(TokenEnded), revocation.valid(token.token_id):
                await asyncio.Event().wait()
    finally:
        looking.cancel()


@pytest.mark.asyncio
async def test_a_cancellation_by_others_stays_one() -> None:
    team = MemoryTeam()
    revocation = Revocation(team, SteadyClock())

    async def wait(token_id: str | None) -> None:
        with revocation.valid(token_id):
            await asyncio.Event().wait()

    for token_id in ("unknown", None):
        task = asyncio.create_task(wait(token_id))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    task = asyncio.create_task(wait("unknown"))
    await asyncio.sleep(0)
    await revocation.look()  # both at once
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
