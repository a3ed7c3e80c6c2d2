"""Room for so many at once: whoever finds none waits, as long as the patience lasts.

Tested in tests/unit/server/test_room.py.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from noetl.model.errors import Overloaded

T = TypeVar("T", bound=Hashable)


class Room(Generic[T]):
    """So many places; whoever finds none is let in by one that leaves, the first first, or refused when his patience ends."""

    def __init__(self, places: int, patience_s: float | None = None) -> None:
        self.inside: set[T] = set()
        self._places = places
        self._patience_s = patience_s
        self._waiting: deque[tuple[asyncio.Future[None], T]] = deque()

    def enter(self, who: T) -> bool:
        """Take a place where one is free and nobody waits for it; else it has to be waited for."""
        if self._waiting or len(self.inside) >= self._places:
            return False
        self.inside.add(who)
        return True

    async def wait(self, who: T) -> None:
        """Wait for a place and take it. Raises Overloaded."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((place, who))
        try:
            async with asyncio.timeout(self._patience_s):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():
                self.leave(who)  # it was given a place in the same moment
            elif (place, who) in self._waiting:
                self._waiting.remove((place, who))
            if isinstance(error, TimeoutError):
                raise Overloaded from None
            raise

    def leave(self, who: T) -> None:
        """Give a place up: to the first who waits, where there is one."""
        self.inside.discard(who)
        while self._waiting and len(self.inside) < self._places:
            place, other = self._waiting.popleft()
            if not place.done():
                self.inside.add(other)
                place.set_result(None)
