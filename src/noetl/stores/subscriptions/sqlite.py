"""Progress of subscriptions in a SQLite file.

Tested in tests/conformance/test_subscriptions.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from noetl.ports.triggers import Progress
from noetl.stores.common.intake_rows import SEEN_EVERY_MS, progress_of
from noetl.stores.common.queries import queries
from noetl.stores.sqlite.database import Database

_SQL = queries("sqlite")


class SqliteSubscriptions:
    """Progress of subscriptions in the file of a store."""

    def __init__(self, database: Database) -> None:
        self._rows = database.rows
        self._noted = database.noted

    async def progress(self, state_id: str) -> Progress:
        return progress_of(await self._rows("find_progress", state_id))

    async def note(self, state_id: str, status: Mapping[str, Any]) -> None:
        await self._noted(None, "note_status", state_id, _text(status))

    async def known(self, state_id: str, message_ids: Sequence[str], now: int) -> set[str]:
        rows = await self._rows("list_taken", state_id, _text(message_ids))
        old = [row[0] for row in rows if row[1] < now - SEEN_EVERY_MS]
        if old:
            await self._noted(None, "see_taken", state_id, _text(old), now)
        return {row[0] for row in rows}

    async def forget(self, state_id: str, before: int) -> int:
        return await self._noted(None, "forget_taken", state_id, before)

    async def prune(self) -> int:
        if not await self._rows("lost_states"):  # looking takes no write lock
            return 0
        await self._noted(None, "prune_taken")
        return await self._noted(None, "prune_states")


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
