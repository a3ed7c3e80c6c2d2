"""The WebSocket of the server: that of uvicorn, past which whole messages take a short way.

Most frames of a worker's session are whole binary messages, and each step of an execution is one of them each way. Whoever
serves the connection finds it in its scope, and may give it a `sink` for them. All else, such as opening, closing and signs of
life, is left to uvicorn and its library. Tested in tests/server/test_sockets.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from noetl.wire.frames import Cutter, binary

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent
    from websockets.http11 import Request

_EXTENSION = "noetl.socket"
_MOST_WAITING = 64  # messages that the application has not read; then the other side waits


def quick_socket(scope: Mapping[str, Any]) -> QuickSocket | None:
    """Give the connection that a scope belongs to, where it is one of these."""
    found: QuickSocket | None = scope.get("extensions", {}).get(_EXTENSION)
    return found


class QuickSocket(WebSocketsSansIOProtocol):
    """One connection."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.sink: Callable[[bytes], None] | None = None
        self._cutter: Cutter | None = Cutter(masked=True)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            extensions: Any = self.scope["extensions"]
            extensions[_EXTENSION] = self

    def data_received(self, data: bytes) -> None:
        if not self.handshake_complete:
            if self.handshake_initiated or not data.endswith(b"\r\n\r\n"):
                self._cutter = None  # frames came too early: where they end, only the library knows
            super().data_received(data)
            return
        for message, frame in ((None, data),) if self._cutter is None else self._cutter.cut(data):
            if message is None:
                super().data_received(frame)
            elif self.close_sent or self.conn.state is not State.OPEN:
                continue
            elif self.sink is not None:
                self.sink(message)
            else:
                self.queue.put_nowait({"type": "websocket.receive", "bytes": message})
        if self.queue.qsize() > _MOST_WAITING:
            self.hold()

    def hold(self) -> None:
        """Read no more for now: the other side waits."""
        if not self.read_paused and not self.transport.is_closing():
            self.read_paused = True
            self.transport.pause_reading()

    def go_on(self) -> None:
        """Read again."""
        if self.read_paused and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()

    def write(self, data: bytes) -> bool:
        """Send a whole message now; False where it has to wait, or cannot be sent."""
        is_open = self.handshake_complete and not self.close_sent and not self.disconnected
        if not is_open or self.conn.state is not State.OPEN or not self.writable.is_set():
            return False
        self.transport.write(binary(data, masked=False))
        return True

    async def send(self, message: ASGISendEvent) -> None:
        data = message.get("bytes") if message["type"] == "websocket.send" else None
        if data is None or not self.write(data):
            await super().send(message)
