"""The WebSocket of the server: that of uvicorn, past which whole messages take a short way.

Most frames of a worker's session are whole binary messages, and each step of an execution is one of them each way. All else,
such as opening, closing and signs of life, is left to uvicorn and its library. Tested in tests/server/test_sockets.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from noetl.wire.frames import Cutter, binary

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

_MOST_WAITING = 64  # messages that the application has not read; then the other side waits


class QuickSocket(WebSocketsSansIOProtocol):
    """One connection."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._cutter: Cutter | None = Cutter(masked=True)

    def data_received(self, data: bytes) -> None:
        if not self.handshake_complete:
            if self.handshake_initiated or not data.endswith(b"\r\n\r\n"):
                self._cutter = None  # frames came too early: where they end, only the library knows
            super().data_received(data)
            return
        for message, frame in ((None, data),) if self._cutter is None else self._cutter.cut(data):
            if message is None:
                super().data_received(frame)
            elif not self.close_sent and self.conn.state is State.OPEN:
                self.queue.put_nowait({"type": "websocket.receive", "bytes": message})
        if not self.read_paused and self.queue.qsize() > _MOST_WAITING:
            self.read_paused = True
            self.transport.pause_reading()

    async def send(self, message: ASGISendEvent) -> None:
        data = message.get("bytes") if message["type"] == "websocket.send" else None
        can_be_sent = self.handshake_complete and not self.close_sent and not self.disconnected
        if data is None or not can_be_sent or self.conn.state is not State.OPEN or not self.writable.is_set():
            await super().send(message)
        else:
            self.transport.write(binary(data, masked=False))
