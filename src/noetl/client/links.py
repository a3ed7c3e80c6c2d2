"""Links for a worker's frames: a WebSocket, or one HTTP request per frame.

A link carries frames until it breaks; the session resends unanswered ones. Tested in tests/client/test_session.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from noetl.client.http import Http, bearer, cut, error_of
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
_CLOSE_S = 1.0
_PING_S, _PONG_S = 5.0, 10.0  # a dead connection is detected after both
_MOST_RECEIVED = 256 * 1024 * 1024
_MOST_SENT = 15 * 1024 * 1024  # the server closes the session at 16 MB
_NO_UPGRADE = (400, 404, 405, 426, 501)  # a proxy in between does not support WebSockets
_to_worker: msgspec.json.Decoder[ToWorker] = msgspec.json.Decoder(ToWorker)
_encode = msgspec.json.Encoder().encode
_ANSWERS: dict[type[Any], Any] = {Claim: Leases, Report: Leases, Heartbeat: Stop, Ack: Stop, Release: Stop}

Receive = Callable[[Any], None]


class NoSocket(Exception):  # noqa: N818  it leads to HttpLink
    """WebSockets to the server are blocked."""


class Link(Protocol):
    """Carry frames both ways until the link breaks."""

    welcome: Welcome

    def send(self, frame: FromWorker) -> None:
        """Queue a frame for sending. Raises Unreachable on a broken link."""

    async def broken(self) -> None:
        """Wait until the link is broken."""

    async def close(self) -> None: ...


class SocketLink:
    """One WebSocket; a dedicated task sends the frames in order."""

    def __init__(self, socket: Any, welcome: Welcome, receive: Receive) -> None:
        self.welcome = welcome
        self._socket = socket
        self._receive = receive
        self._closed = _connection_closed()
        self._outgoing: list[bytes] = []
        self._is_queued = asyncio.Event()
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]

    def send(self, frame: FromWorker) -> None:
        data = _encode(frame)
        if len(data) > _MOST_SENT:
            raise NoetlError(
                f"A report of {len(data):,} bytes is larger than the server accepts. Store results by reference."
            )
        if self._tasks[0].done() or self._tasks[1].done():
            raise Unreachable("The session is closed.")
        self._outgoing.append(data)
        self._is_queued.set()

    async def broken(self) -> None:
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """Flush the queued frames, then close."""
        try:
            with suppress(self._closed, TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self._flush()
            await self._socket.close()
        finally:
            self._socket.transport.abort()  # if it is cancelled
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    async def _read(self) -> None:
        with suppress(self._closed):
            async for data in self._socket:
                try:
                    frame = _to_worker.decode(data)
                except msgspec.MsgspecError as error:
                    _log.error("The server sent a frame that this version does not know: %s", error)
                    return
                self._receive(frame)

    async def _write(self) -> None:
        with suppress(self._closed):
            while True:
                await self._is_queued.wait()
                self._is_queued.clear()
                await self._flush()

    async def _flush(self) -> None:
        frames, self._outgoing = self._outgoing, []
        for data in frames:
            await self._socket.send(data)


def _connection_closed() -> type[Exception]:
    from websockets.exceptions import ConnectionClosed

    return ConnectionClosed


async def open_socket(url: str, token: str | None, hello: Hello, receive: Receive) -> SocketLink:
    """Open a session. Raises Unreachable, NoSocket, or the server's refusal."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidStatus

    headers = bearer(token)
    try:
        socket = await connect(
            "ws" + url.removeprefix("http") + _PATH,
            additional_headers=headers,
            compression=None,
            max_size=_MOST_RECEIVED,
            open_timeout=_OPEN_S,
            ping_interval=_PING_S,
            ping_timeout=_PONG_S,
            close_timeout=_CLOSE_S,
        )
    except InvalidStatus as error:
        status = error.response.status_code
        if status in _NO_UPGRADE:
            raise NoSocket from None
        raise error_of(Problem("about:blank", "refused", status, f"{url} refused the session: {status}")) from None
    except (InvalidMessage, ConnectionClosed) as error:  # the server went away during the handshake
        raise cut(url, error) from None
    except InvalidHandshake:
        raise NoSocket from None
    except (OSError, TimeoutError) as error:
        raise Unreachable(f"The server {url} cannot be reached: {str(error) or type(error).__name__}") from None
    link: SocketLink | None = None
    try:
        answer = await _greet(socket, hello)
        if not isinstance(answer, Welcome):
            raise error_of(_problem(answer))
        link = SocketLink(socket, answer, receive)
    except (ConnectionClosed, TimeoutError) as error:
        raise cut(url, error) from None
    except msgspec.MsgspecError as error:
        raise InvalidInput(
            f"{url} is not a server of this version: {error}. Use the same version of worker and server."
        ) from None
    finally:
        if link is None:  # cancelled too: a worker may end before the server answers
            try:
                await socket.close()
            finally:
                socket.transport.abort()
    return link


async def _greet(socket: Any, hello: Hello) -> ToWorker:
    """Send the hello and return the answer."""
    with suppress(_connection_closed()):  # a server that refuses at once has sent the reason
        await socket.send(_encode(hello))
    async with asyncio.timeout(_OPEN_S):
        answer = _to_worker.decode(await socket.recv())
        while isinstance(answer, Stop):  # for the previous session; the welcome repeats what must stop
            answer = _to_worker.decode(await socket.recv())
        return answer


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
            return  # waiting claims time out
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
        # The client is closed next; it would forget a connection that is being opened.
        await asyncio.gather(*self._asking, return_exceptions=True)


async def open_http(http: Http, hello: Hello, receive: Receive) -> HttpLink:
    """Register the worker over HTTP."""
    welcome = await http.ask("POST", "/api/worker/hello", Welcome, hello)
    return HttpLink(http, welcome, hello.worker, receive)


def refused(frame: Refused) -> NoetlError:
    """Return the error of a refused frame."""
    return error_of(_problem(frame))
