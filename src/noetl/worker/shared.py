"""What tasks of one worker share: connections and pools, opened on first use and closed with the worker.

Tested in tests/tools/test_postgres.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


class Shared:
    """Things by key, each opened once; a failed opening is tried again by the next caller."""

    def __init__(self) -> None:
        self._open: dict[str, Any] = {}
        self._lock = asyncio.Lock()

    async def get(self, key: str, open: Callable[[], Awaitable[Any]]) -> Any:
        """Return what is open under a key, or open it."""
        async with self._lock:
            if key not in self._open:
                self._open[key] = await open()
            return self._open[key]

    async def close(self) -> None:
        """Close everything; what fails to close does not keep the rest open."""
        opened = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(one.close() for one in opened), return_exceptions=True)
