"""Probe of the store for `/ready`. Tested in tests/server/http/test_ready.py."""

from __future__ import annotations

import asyncio
from typing import Final

from noetl.model.errors import StoreUnavailable
from noetl.ports import EventLog

_FRESH_S: Final = 0.25  # callers within this time share one write
_PATIENCE_S: Final = 2.0


class StoreProbe:
    """Writes to the store on request, one write at a time."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._begun = 0.0
        self._writing: asyncio.Task[None] | None = None

    async def check(self) -> None:
        """Write to the store, or share a write of just now. Raises StoreUnavailable."""
        now = asyncio.get_running_loop().time()
        writing = self._writing
        if writing is None or (writing.done() and now > self._begun + _FRESH_S):
            self._begun = now
            writing = self._writing = asyncio.create_task(self._log.probe())
            writing.add_done_callback(_retrieve)
        try:
            await asyncio.wait_for(asyncio.shield(writing), _PATIENCE_S)
        except TimeoutError:
            raise StoreUnavailable("The store does not answer. Check that it is running.") from None


def _retrieve(task: asyncio.Task[None]) -> None:
    """Retrieve the error, which a caller may no longer wait for."""
    if not task.cancelled():
        task.exception()
