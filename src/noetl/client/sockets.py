"""The WebSocket of a worker: that of the library, past which whole messages take a short way.

Once it has a `sink`, whole binary messages go there as they come. All else is left to the library, which also keeps the
connection alive. Tested in tests/client/test_session.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.protocol import State

from noetl.wire.frames import Cutter, binary


class QuickConnection(ClientConnection):
    """One connection."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.sink: Callable[[bytes], None] | None = None
        self._cutter: Cutter | None = Cutter(masked=False)

    def data_received(self, data: bytes) -> None:
        if self.protocol.state is State.CONNECTING:
            if not data.endswith(b"\r\n\r\n"):
                self._cutter = None  # frames came with the answer: where they end, only the library knows
            super().data_received(data)
            return
        if self._cutter is None:
            super().data_received(data)
            return
        said = self._cutter.whole(data)
        for message, frame in ((said, data),) if said is not None else self._cutter.cut(data):
            if message is None or self.sink is None:
                super().data_received(frame)
            elif self.protocol.state is State.OPEN:
                self.sink(message)

    def send_message(self, data: bytes) -> Awaitable[None] | None:
        """Send a whole message; gives what is to be waited for, if anything is. That raises ConnectionClosed."""
        if self.protocol.state is not State.OPEN or self.transport.is_closing():
            return self.send(data)
        self.transport.write(binary(data, masked=True))
        return self.drain() if self.paused else None
