"""Room for so many at once: whoever finds none waits, as long as the patience lasts.

Tested in tests/unit/server/test_room.py.
"""

from __future__ import annotations

import asyncio
from collections import deque

from noetl.model.errors import Overloaded


class Room:
    """So many places; whoever finds none is let in by one that leaves, the first first, or refused when his patience ends."""

    def __init__(self, places: int, patience_s: float | None = None) -> None:
        self._free = places
        self._patience_s = patience_s
        self._waiting: deque[asyncio.Future[None]] = deque()

    def enter(self) -> bool:
        """Take a place where one is free and nobody waits for it; else it has to be waited for."""
        if self._free <= 0 or self._waiting:
            return False
        self._free -= 1
        return True

    async def wait(self) -> None:
        """Wait for a place and take it. Raises Overloaded."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(self._patience_s):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():
                self.leave()  # it was given a place in the same moment
            elif place in self._waiting:
                self._waiting.remove(place)
            if isinstance(error, TimeoutError):
                raise Overloaded from None
            raise

    def leave(self) -> None:
        """Give a place up: to the first who waits, where there is one."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._free += 1
