"""The two ways to a server for a worker's frames: one WebSocket, or a request for each frame where no WebSocket gets through.

A link carries frames until it breaks; what is asked again after that is the session's business. Tested in
tests/client/test_session.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from noetl.client.http import Http, cut
from noetl.client.problems import error_of
from noetl.model.errors import InvalidInput, NoetlError, StoreUnavailable, Unreachable
from noetl.wire.problem import Problem
from noetl.wire.session import (
    Ack,
    Claim,
    Drain,
    FromWorker,
    Heartbeat,
    Hello,
    Leases,
    Refused,
    Release,
    Report,
    Stop,
    ToWorker,
    Welcome,
)

_log = logging.getLogger(__name__)
_PATH = "/api/worker/session"
_OPEN_S = 5.0
_PING_S, _PONG_S = 5.0, 10.0  # a connection that is cut without a word is noticed after both
_MOST_RECEIVED = 256 * 1024 * 1024
_MOST_SENT = 15 * 1024 * 1024  # the server closes the session at 16 MB
_NO_UPGRADE = (400, 404, 405, 426, 501)  # a proxy in between does not know WebSockets
_to_worker: msgspec.json.Decoder[ToWorker] = msgspec.json.Decoder(ToWorker)
_encode = msgspec.json.Encoder().encode
_ANSWERS: dict[type[Any], Any] = {Claim: Leases, Report: Leases, Heartbeat: Stop, Ack: Stop, Release: Stop}

Receive = Callable[[Any], None]


class NoSocket(Exception):  # noqa: N818  it leads to the other way
    """No WebSocket gets through to the server."""


class Link(Protocol):
    """Frames both ways until it breaks."""

    welcome: Welcome

    def send(self, frame: FromWorker) -> Awaitable[None] | None:
        """Send a frame; returns what is to be waited for, if anything is. Both raise Unreachable on a broken link."""

    async def broken(self) -> None:
        """Wait until nothing goes through any more."""

    async def close(self) -> None: ...


class SocketLink:
    """One WebSocket."""

    def __init__(self, socket: Any, welcome: Welcome, receive: Receive) -> None:
        self.welcome = welcome
        self._socket = socket
        self._receive = receive
        self._closed = _connection_closed()
        self._reading = asyncio.create_task(self._read())
        socket.sink = self._take

    def send(self, frame: FromWorker) -> Awaitable[None] | None:
        data = _encode(frame)
        if len(data) > _MOST_SENT:
            raise NoetlError(
                f"a report of {len(data):,} bytes is more than the server takes; store results by reference."
            )
        waiting: Awaitable[None] | None = self._socket.send_message(data)
        return None if waiting is None else self._sent(waiting)

    async def _sent(self, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except self._closed as error:
            raise Unreachable(f"the session was closed: {error}") from None

    async def broken(self) -> None:
        await asyncio.wait([self._reading])

    async def close(self) -> None:
        await self._socket.close()
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def _read(self) -> None:
        """Serve frames until the connection is closed."""
        with suppress(self._closed):
            async for data in self._socket:
                self._take(data)

    def _take(self, data: bytes) -> None:
        try:
            self._receive(_to_worker.decode(data))
        except msgspec.MsgspecError as error:
            _log.error("the server sent a frame that this version does not know: %s", error)
            self._reading.cancel()  # so the link is broken


def _connection_closed() -> type[Exception]:
    from websockets.exceptions import ConnectionClosed

    return ConnectionClosed


async def open_socket(url: str, token: str | None, hello: Hello, receive: Receive) -> SocketLink:
    """Open a session. Raises Unreachable, NoSocket, or the error of a server that refuses it."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidStatus

    from noetl.client.sockets import QuickConnection

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        socket = await connect(
            "ws" + url.removeprefix("http") + _PATH,
            additional_headers=headers,
            compression=None,
            max_size=_MOST_RECEIVED,
            open_timeout=_OPEN_S,
            ping_interval=_PING_S,
            ping_timeout=_PONG_S,
            close_timeout=1.0,
            create_connection=QuickConnection,
        )
    except InvalidStatus as error:
        status = error.response.status_code
        if status in _NO_UPGRADE:
            raise NoSocket from None
        raise error_of(Problem("about:blank", "refused", status, f"{url} refused the session: {status}")) from None
    except (InvalidMessage, ConnectionClosed) as error:  # it went away while it was asked
        raise cut(url, error) from None
    except InvalidHandshake:
        raise NoSocket from None
    except (OSError, TimeoutError) as error:
        raise Unreachable(f"the server {url} cannot be reached: {str(error) or type(error).__name__}") from None
    try:
        with suppress(ConnectionClosed):  # a server that refuses at once has said why
            await socket.send(_encode(hello))
        async with asyncio.timeout(_OPEN_S):
            answer = _to_worker.decode(await socket.recv())
            while isinstance(answer, Stop):  # for the session before; what must stop is in the welcome too
                answer = _to_worker.decode(await socket.recv())
    except (ConnectionClosed, TimeoutError) as error:
        await socket.close()
        raise cut(url, error) from None
    except msgspec.MsgspecError as error:
        await socket.close()
        raise InvalidInput(f"what answers at {url} is no server of this version: {error}") from None
    if isinstance(answer, Welcome):
        return SocketLink(socket, answer, receive)
    await socket.close()
    raise error_of(_problem(answer))


def _problem(answer: Any) -> Problem:
    found = answer.problem if isinstance(answer, Refused) else {}
    return msgspec.convert({"type": "about:blank", "title": "refused", "status": 500, **found}, Problem)


class HttpLink:
    """A request for each frame."""

    def __init__(self, http: Http, welcome: Welcome, worker: str, receive: Receive) -> None:
        self.welcome = welcome
        self._http = http
        self._worker = worker
        self._receive = receive
        self._broken = asyncio.Event()
        self._asking: set[asyncio.Task[None]] = set()

    def send(self, frame: FromWorker) -> None:
        if self._broken.is_set():
            raise Unreachable
        if isinstance(frame, Drain | Hello):
            return  # the claims that wait end by themselves
        task = asyncio.create_task(self._ask(msgspec.structs.replace(frame, worker=self._worker)))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, frame: Any) -> None:
        kind, path = type(frame), f"/api/worker/{type(frame).__name__.lower()}"
        named = getattr(frame, "id", "")
        try:
            self._receive(await self._http.ask("POST", path, _ANSWERS[kind], frame))
        except Unreachable:
            self._broken.set()
        except NoetlError as error:
            status = 503 if isinstance(error, StoreUnavailable) else 422
            self._receive(Refused({"type": "about:blank", "title": "", "status": status, "detail": str(error)}, named))

    async def broken(self) -> None:
        await self._broken.wait()

    async def close(self) -> None:
        self._broken.set()
        for task in self._asking:
            task.cancel()


async def open_http(http: Http, hello: Hello, receive: Receive) -> HttpLink:
    """Open a session over HTTP."""
    welcome = await http.ask("POST", "/api/worker/hello", Welcome, hello)
    return HttpLink(http, welcome, hello.worker, receive)


def refused(frame: Refused) -> NoetlError:
    """Return the error of a frame that was refused."""
    return error_of(_problem(frame))
