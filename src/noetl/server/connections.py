"""Whole requests and answers over uvicorn's connections: read from them, and written to them, in one go.

A body that has come whole needs no waiting, and the head and the body of an answer are one write. Whatever else there is, such
as a body that is still coming, an answer in parts, a reader that is slow or a connection that is to be closed, is left to
uvicorn; so is everything where its connections are made otherwise than is known here. Tested in
tests/server/test_connections.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from starlette.types import Receive, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_USED = frozenset({"transport", "flow", "default_headers", "message_event", "on_response", "access_log", "body"})
_USED |= {
    "keep_alive",
    "disconnected",
    "more_body",
    "response_started",
    "response_complete",
    "waiting_for_100_continue",
}
_USED_OF_FLOW = frozenset({"read_paused", "write_paused"})


def _has(kind: type, names: frozenset[str]) -> bool:
    return names.issubset(kind.__init__.__code__.co_names)  # type: ignore[misc]  # what its objects are given


_KNOWN = RequestResponseCycle if _has(RequestResponseCycle, _USED) and _has(FlowControl, _USED_OF_FLOW) else None


def arrived(receive: Receive) -> bytes | None:
    """Give the body of a request that has come whole; None: it is to be received part by part."""
    cycle = getattr(receive, "__self__", None)
    if type(cycle) is not _KNOWN or cycle.more_body or cycle.disconnected or cycle.flow.read_paused:
        return None
    body = bytes(cycle.body)
    cycle.body = bytearray()
    cycle.message_event.clear()  # whoever receives now waits until the other side has gone
    return body


class Head:
    """What all answers of one kind begin with: a status, and headers except for the length."""

    def __init__(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self._status = status
        self._headers = headers
        self._line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
        self._rest = b"".join(b"%b: %b\r\n" % one for one in headers) + b"\r\n"

    def write(self, send: Send, body: bytes) -> bool:
        """Write such an answer in one go; False: it cannot be, and nothing was written."""
        cycle = getattr(send, "__self__", None)
        if type(cycle) is not _KNOWN or cycle.response_started or cycle.disconnected:
            return False
        if cycle.flow.write_paused or cycle.access_log or not cycle.keep_alive:
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        own = [b"%b: %b\r\n" % one for one in cycle.default_headers]  # such as the date
        length = b"content-length: %d\r\n" % len(body)
        cycle.transport.write(b"".join((self._line, *own, length, self._rest, body)))
        cycle.message_event.set()
        cycle.on_response()
        return True

    async def send(self, send: Send, body: bytes) -> None:
        """Send an answer that has this head, in two messages."""
        headers = [(b"content-length", b"%d" % len(body)), *self._headers]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
