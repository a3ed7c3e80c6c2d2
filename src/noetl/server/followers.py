"""Lets people follow an execution: they read the log, and are woken when there is more.

Nothing is buffered, so a slow follower costs nothing and misses nothing. Tested in tests/unit/server/test_followers.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from noetl.model.events import Event
from noetl.ports import EventLog

ENDED = frozenset({"completed", "failed", "cancelled", "partial"})
_LAST = frozenset({"playbook.processed", "playbook.corrected"})  # what may be the last event of a log
_PAGE = 500


class Followers:
    """Those who follow, by execution."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._bells: dict[str, set[asyncio.Event]] = {}

    def tell(self, execution_id: str) -> None:
        """Wake those who follow one execution."""
        for bell in self._bells.get(execution_id, ()):
            bell.set()

    def tell_all(self) -> None:
        """Wake everybody: somebody else has committed."""
        for execution_id in self._bells:
            self.tell(execution_id)

    async def follow(self, execution_id: str, after: int = 0) -> AsyncIterator[Event]:
        """Give the events of an execution as they come, until it has ended."""
        bell = asyncio.Event()
        self._bells.setdefault(execution_id, set()).add(bell)
        try:
            while True:
                bell.clear()
                events = await self._log.read(execution_id, after, _PAGE)
                for event in events:
                    after = event.seq
                    yield event
                if len(events) == _PAGE:
                    continue
                if (not events or events[-1].event_type in _LAST) and await self._is_over(execution_id, after):
                    return
                await bell.wait()
        finally:
            self._bells[execution_id].discard(bell)
            if not self._bells[execution_id]:
                del self._bells[execution_id]

    async def _is_over(self, execution_id: str, after: int) -> bool:
        row = await self._log.execution(execution_id)
        return row is not None and row.get("status") in ENDED and after >= row["last_seq"]
