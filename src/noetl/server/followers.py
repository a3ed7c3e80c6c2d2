"""Lets people follow an execution: they read the log, and are woken when there is more.

Nothing is buffered, so a slow follower costs nothing and misses nothing. Tested in tests/unit/server/test_followers.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from noetl.model.events import Event
from noetl.ports import EventLog

ENDED = frozenset({"completed", "failed", "cancelled", "partial"})
_LAST = "playbook.processed"  # after it, only late reports and repairs
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

    async def follow(self, execution_id: str, after: int = 0) -> AsyncGenerator[Event, None]:
        """Give the events of an execution as they come, until it has ended."""
        bell = asyncio.Event()
        self._bells.setdefault(execution_id, set()).add(bell)
        try:
            may_be_over = True  # it may have ended before we came
            while True:
                bell.clear()
                events = await self._log.read(execution_id, after, _PAGE)
                for event in events:
                    after = event.seq
                    may_be_over = may_be_over or event.event_type == _LAST
                    yield event
                if len(events) == _PAGE:
                    continue
                if may_be_over:
                    row = await self._log.execution(execution_id)
                    may_be_over = row is not None and row.get("status") in ENDED
                    if row is not None and may_be_over and after >= row["last_seq"]:
                        return
                    if may_be_over:
                        continue  # it has ended, and there is more to read
                await bell.wait()
        finally:
            self._bells[execution_id].discard(bell)
            if not self._bells[execution_id]:
                del self._bells[execution_id]
