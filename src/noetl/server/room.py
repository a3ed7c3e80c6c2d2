"""Room for so many at once: whoever finds none waits, as long as the patience lasts.

Tested in tests/unit/server/test_sequencer.py.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from noetl.model.errors import Overloaded


class Room:
    """A semaphore that refuses instead of keeping people waiting; without a patience it keeps them."""

    def __init__(self, places: int, patience_s: float | None = None) -> None:
        self._places = asyncio.Semaphore(places)
        self._patience_s = patience_s

    async def __aenter__(self) -> None:
        if self._patience_s is None or not self._places.locked():
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout(self._patience_s):
                await self._places.acquire()
        except TimeoutError:
            raise Overloaded from None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._places.release()
