"""Connections over HTTP and WebSocket with bounds that hold before a token.

The parser sets no limit to a path, to headers or to what follows a body, so its callbacks count. A client that breaks a bound
gets an answer that it can read: the server stops sending, and discards for a while what still arrives. Tested in
tests/server/http/test_bounds.py.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from noetl.server.http.guard import HEADERS
from noetl.server.http.lines import Line, Lines, Phase
from noetl.server.http.worker_socket import ADMIT
from noetl.server.problems import Refusal, problem_response
from noetl.settings import HttpSettings

_GRACE_S = 10  # for requests in flight on shutdown
_MAX_FRAME = 16 * 1024 * 1024
_MAX_HELLO = 64 * 1024  # bytes of a session before its token is known
_MAX_HEADERS = 128
_MAX_PIPELINED = 64
_MAX_REST = 1024 * 1024 * 1024  # bytes of a body that are discarded after the application's answer
_MAX_INVALID_REST = 1024 * 1024  # likewise after a request that broke a bound, or is not HTTP
_PROGRESS = 16 * 1024 * 1024  # of these bytes, which renews the time to send the rest
_FRAMING = 16  # bytes around each byte of a body; a chunk of one byte has five
_TOO_BIG = 1009  # of a WebSocket
_LAST = Response(headers={**HEADERS, "Connection": "close"}).raw_headers[:-1]  # of the last answer, without its length


class ServerConfig(uvicorn.Config):
    """uvicorn's configuration for one server, with the bounds of its connections."""

    def __init__(self, app: ASGIApp, bounds: HttpSettings, **more: Any) -> None:
        super().__init__(
            cast("Any", app),
            log_config=None,
            access_log=False,
            proxy_headers=False,  # the client address is not used by the application
            lifespan="off",
            http=Connection,
            ws=Socket,
            ws_max_size=_MAX_FRAME,
            ws_per_message_deflate=False,  # bytes that arrive are counted; workers compress nothing
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,
            timeout_keep_alive=bounds.idle_s,
            **more,
        )
        self.bounds = bounds
        self.lines = Lines(bounds)


class Connection(HttpToolsProtocol):
    """One connection over HTTP."""

    def __init__(self, config: ServerConfig, *args: Any, **more: Any) -> None:
        super().__init__(config, *args, **more)
        self._bounds = config.bounds
        self._lines = config.lines
        self._line: Line
        self._head = 0  # bytes of path and headers of the current message
        self._is_head = False  # the current message has begun, its headers are not complete
        self._is_open = False  # its headers are complete, its body is not
        self._parsed = 0  # bytes of path, headers and body in the data that is being parsed
        self._unparsed = 0  # other bytes of the current message
        self._rest = 0  # discarded bytes
        self._most_rest = _MAX_REST
        self._refusal: Refusal | None = None  # answered when it is its turn

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        line = self._line = Line(transport, self._bounds)
        line.attend(self._close, self._expire)
        super().connection_made(line)
        if not self._lines.admit(line):
            self._write(Refusal(503, "busy", "Too many connections are open.", fix="Try again soon.", retry_after_s=1))
            line.hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lines.leave(self._line)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        line = self._line
        if self._is_refused or line.phase is Phase.REST:
            self._discard(len(data))
            if self._is_refused:
                return
        if line.phase is Phase.NEW or line.phase is Phase.IDLE:
            line.enter(Phase.HEAD)
        self._parsed = 0
        super().data_received(data)
        self._unparsed = max(0, self._unparsed + len(data) - _FRAMING * self._parsed)
        if self._unparsed > self._bounds.head_bytes and not self._is_refused:
            self._refuse(_malformed() if self._is_open else _too_long())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = self._unparsed = 0
        self._is_head = True

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._bounds.head_bytes // 2:
            self._fail(_path_too_long())
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        if len(self.headers) >= _MAX_HEADERS:
            self._fail(_too_long())
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= _MAX_PIPELINED:
            self._fail(Refusal(429, "too-many", "Too many requests are sent at once.", fix="Wait for answers."))
        super().on_headers_complete()
        self._line.enter(Phase.BUSY)
        self._is_head, self._is_open = False, True

    def on_body(self, body: bytes) -> None:
        self._parsed += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_open = False
        self._rest = 0
        if self._line.phase is Phase.REST:
            self._line.enter(Phase.NEW)

    def on_response_complete(self) -> None:
        is_last = not self.pipeline
        super().on_response_complete()
        line = self._line
        if line.is_closing() or not is_last:
            return
        if self._refusal is not None:
            self._refuse(self._refusal)
        elif self._is_open:
            line.enter(Phase.REST)
        else:
            line.enter(Phase.HEAD if self._is_head else Phase.IDLE)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  after any error of the parser
        self._refuse(self._refusal or _malformed())

    @property
    def _is_refused(self) -> bool:
        return self._refusal is not None or self._line.is_closing()

    def _discard(self, size: int) -> None:
        """Count bytes that nothing reads; a client that sends fast has time for more."""
        before, self._rest = self._rest, self._rest + size
        if self._rest > self._most_rest:
            self._line.abort()
        elif before // _PROGRESS < self._rest // _PROGRESS:
            self._line.enter(self._line.phase)

    def _count(self, size: int) -> None:
        self._parsed += size
        self._head += size
        if self._head > self._bounds.head_bytes:
            self._fail(_too_long())

    def _fail(self, refusal: Refusal) -> None:
        """Stop the parser, which calls `send_400_response`."""
        self._refusal = refusal
        raise refusal

    def _refuse(self, refusal: Refusal) -> None:
        """Answer and close; after the answers to earlier requests, if there are any."""
        is_busy = bool(self.cycle) and not self.cycle.response_complete
        self._most_rest = _MAX_INVALID_REST
        if is_busy and not self._is_open:
            self._refusal = refusal
        elif self._is_open and (not is_busy or self.cycle.response_started or self.pipeline):
            self._line.hang_up()  # another answer has begun, or comes first
        else:
            self._write(refusal)
            self._linger()

    def _write(self, refusal: Refusal) -> None:
        """Write the answer to a request that never reaches the application."""
        answer = problem_response(refusal, "")
        headers = (*self.server_state.default_headers, *answer.raw_headers, *_LAST)
        lines = [name + b": " + value + b"\r\n" for name, value in headers]
        self._line.write(b"".join((STATUS_LINE[answer.status_code], *lines, b"\r\n", answer.body)))

    def _close(self) -> None:
        """Close; linger while the client still sends a request that was answered."""
        if self._is_open:
            self._linger()
        else:
            self._line.hang_up()

    def _linger(self) -> None:
        self._line.half_close()
        self.flow.resume_reading()

    def _expire(self) -> None:
        if self._line.phase is Phase.HEAD:
            seconds = self._bounds.head_s
            detail = f"The path and the headers did not arrive within {seconds} seconds."
            self._refuse(Refusal(408, "too-slow", detail, fix="Send the request again, faster."))
        else:
            self._line.abort()


class Socket(WebSocketsSansIOProtocol):
    """One WebSocket; until the application admits it, it may send little."""

    def __init__(self, config: ServerConfig, *args: Any, **more: Any) -> None:
        super().__init__(config, *args, **more)
        self._lines = config.lines
        self._line: Line
        self._left: int | None = config.bounds.head_bytes + _MAX_HELLO  # bytes; None: admitted
        self._pong = b""  # sent when there is room

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, Line)  # of the connection that was upgraded
        self._line = transport
        transport.attend(transport.hang_up, transport.abort)
        transport.enter(Phase.IDLE)  # it gives way to others until it is admitted
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lines.leave(self._line)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                self.conn.fail(_TOO_BIG, "too much before hello")
                self.transport.write(b"".join(self.conn.data_to_send()))
                self.transport.close()
                return
        super().data_received(data)

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["state"][ADMIT] = self._admit

    def handle_ping(self) -> None:
        """Answer a ping; of those that a client sends without reading, the last ones."""
        if self.writable.is_set():
            super().handle_ping()
        else:  # the first ping in the data that has arrived has the pongs for all of them
            self._pong = b"".join(self.conn.data_to_send()) or self._pong

    def resume_writing(self) -> None:
        super().resume_writing()
        pong, self._pong = self._pong, b""
        if pong:
            self.transport.write(pong)

    def _admit(self) -> None:
        self._left = None
        self._line.enter(Phase.BUSY)


def _too_long() -> Refusal:
    return Refusal(
        431, "headers-too-large", "The headers are too large, or too many.", fix="Send fewer or shorter ones."
    )


def _path_too_long() -> Refusal:
    return Refusal(414, "path-too-long", "The path with its query is too long.", fix="Send a shorter path.")


def _malformed() -> Refusal:
    return Refusal(400, "malformed", "The request is not valid HTTP.", fix="Check how the client encodes it.")
