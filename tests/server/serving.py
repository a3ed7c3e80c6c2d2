"""Servers for tests: in this process, over real HTTP, or as a process."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import uvicorn
from websockets.asyncio.client import ClientConnection, connect

from noetl.server.app import app
from noetl.server.auth.gate import create_token
from noetl.server.http.connection import ServerConfig
from noetl.server.http.endpoint import Endpoint
from noetl.server.services import Services
from noetl.settings import ServerSettings, Settings
from noetl.wire import session as frames
from noetl.wiring.embedded import Embedded, open_store, open_team, serving
from tests.preloaded import start_command

PATIENCE_S = 30.0
HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: NAME, path: test/NAME}\n"
_to_worker: msgspec.json.Decoder[frames.ToWorker] = msgspec.json.Decoder(frames.ToWorker)


def playbook(workflow: str, name: str = "play", **sections: Any) -> str:
    """The text of a playbook from its workflow and, as data, any other sections of it."""
    text = HEAD.replace("NAME", name)
    text += "".join(f"{key}: {msgspec.json.encode(value).decode()}\n" for key, value in sections.items())
    return text + "workflow:\n" + workflow


ONE = playbook("  - step: one\n    tool: {kind: noop, result: '{{ workload.n }}'}\n", "one", workload={"n": 1})
TWO = playbook(
    "  - step: one\n    tool: {kind: noop}\n    next: two\n  - step: two\n    tool: {kind: noop, result: 2}\n", "two"
)
WAITS = playbook("  - step: ask\n    tool: {kind: wait, signal: go}\n", "waits")
FAILS = playbook(
    "  - step: first\n    tool: {kind: noop, result: 1}\n    next: bad\n"
    "  - step: bad\n    tool: {kind: python, code: 'result = 1 // int(n)', input: {n: '{{ ctx.n | default(0) }}'}}\n",
    "fails",
)


@dataclass(frozen=True)
class Served:
    """A server in this process, and a client of it."""

    services: Services
    embedded: Embedded
    http: httpx.AsyncClient
    url: str = ""

    async def json(self, method: str, path: str, body: Any = None, status: int | None = None, **more: Any) -> Any:
        """Send a request; its answer must be of this status, or else any success."""
        answer = await self.http.request(method, path, json=body, **more)
        expected = status if status is not None else answer.status_code
        assert answer.status_code == expected, answer.text
        assert status is not None or answer.is_success, answer.text
        return answer.json()

    async def register(self, content: str) -> str:
        found = await self.json("POST", "/api/catalog", {"content": content})
        return str(found["path"])

    async def start(self, content: str, **more: Any) -> str:
        path = await self.register(content)
        found = await self.json("POST", "/api/execute", {"path": path, **more})
        return str(found["execution_id"])

    async def until(self, execution_id: str, *statuses: str) -> dict[str, Any]:
        """Wait until an execution has one of these statuses."""
        end = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            found: dict[str, Any] = await self.json("GET", f"/api/executions/{execution_id}")
            if found["status"] in statuses:
                return found
            assert asyncio.get_running_loop().time() < end, found
            await asyncio.sleep(0.02)


def without_own_token(server: ServerSettings | None) -> ServerSettings:
    """Return settings without `auto`: only a command makes a token of its own."""
    given = server or ServerSettings()
    return msgspec.structs.replace(given, auth="none") if given.auth == "auto" else given


def places(folder: Path, **more: Any) -> Settings:
    return Settings(folder / "noetl.db", **more)


async def secret(
    folder: Path,
    role: str,
    name: str = "",
    pool: str | None = None,
    expires_s: int | None = None,
    namespaces: Sequence[str] = (),
) -> str:
    """Create a token in the store of a folder and return its secret."""
    store = open_store(places(folder))
    token, found = create_token(role, name or role, expires_s, pool, "test", 0 if expires_s else 1, namespaces)
    await open_team(store).add_token(token)
    await store.close()
    return found


def bearer(found: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {found}"}


def address_of(endpoint: Endpoint) -> str:
    """Return a path of an endpoint, with a value for each of its parameters."""
    return endpoint.path.replace("{execution_id}", "12345").replace("{", "").replace("}", "")


@asynccontextmanager
async def in_process(folder: Path, server: ServerSettings | None = None, **more: Any) -> AsyncIterator[Served]:
    """The application without a socket."""
    async with serving(places(folder, **more), without_own_token(server)) as (services, embedded):
        transport = httpx.ASGITransport(app(services))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=PATIENCE_S) as client:
            yield Served(services, embedded, client)


@asynccontextmanager
async def listening(
    folder: Path, server: ServerSettings | None = None, port: int = 0, **more: Any
) -> AsyncIterator[Served]:
    """The application over real HTTP, served by this event loop."""
    async with serving(places(folder, **more), without_own_token(server)) as (services, embedded):
        config = ServerConfig(app(services), services.bounds.http, port=port)
        running = _Quiet(config)
        task = asyncio.create_task(running.serve())
        while not running.started:
            assert not task.done(), task.result()
            await asyncio.sleep(0.005)
        url = f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
        try:
            async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S, verify=False) as client:
                yield Served(services, embedded, client, url)
        finally:
            services.stopping.set()
            running.should_exit = True
            await task
            for connection in [*running.server_state.connections]:  # of requests that outlived the grace period
                connection.transport.close()
            await asyncio.sleep(0)


class _Quiet(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Worker:
    """The worker's end of a session, spoken by hand."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, frame: frames.FromWorker) -> None:
        await self.socket.send(msgspec.json.encode(frame))

    async def receive(self) -> frames.ToWorker:
        return _to_worker.decode(await asyncio.wait_for(self.socket.recv(), PATIENCE_S))

    async def ask(self, frame: frames.FromWorker) -> frames.ToWorker:
        await self.send(frame)
        return await self.receive()

    async def leases(self, frame: frames.FromWorker) -> frames.Leases:
        answer = await self.ask(frame)
        assert isinstance(answer, frames.Leases), answer
        return answer


@asynccontextmanager
async def session(served: Served, name: str = "w1", token: str | None = None, **hello: Any) -> AsyncIterator[Worker]:
    """Open a session and say hello."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = served.url.replace("http", "ws") + "/api/worker/session"
    async with connect(url, additional_headers=headers) as socket:
        worker = Worker(socket)
        answer = await worker.ask(frames.Hello(name, **hello))
        assert isinstance(answer, frames.Welcome), answer
        yield worker


@contextmanager
def process(
    folder: Path,
    *arguments: str,
    auth: str = "none",
    environment: Mapping[str, str] | None = None,
    umask: int = -1,
) -> Iterator[tuple[str, Any]]:
    """Run `noetl …` as a process until it listens; gives its address and the process.

    Without authentication, for tests that speak HTTP by hand; with `auth="auto"` as a user starts it.
    """
    given = {**os.environ, "NOETL_AUTH": auth, **(environment or {})}
    started = start_command(*arguments, "--port", "0", folder=folder, environment=given, umask=umask, text=True)
    with started:
        try:
            line = started.stderr.readline()
            found = re.search(r"http://\S+", line)
            assert found is not None, line
            yield found[0], started
        finally:
            if started.poll() is None:
                started.kill()


async def happens(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that another task does."""
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while not condition():
        assert asyncio.get_running_loop().time() < end, f"{what} did not happen"
        await asyncio.sleep(0.01)
