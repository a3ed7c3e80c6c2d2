"""Progress of subscriptions in PostgreSQL.

Tested in tests/conformance/test_subscriptions.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from noetl.ports.triggers import Progress
from noetl.stores.common.intake_rows import SEEN_EVERY_MS, progress_of
from noetl.stores.postgres.database import PostgresDatabase


class PostgresSubscriptions:
    """Progress of subscriptions in the database of a store."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._rows = database.rows

    async def progress(self, state_id: str) -> Progress:
        return progress_of([tuple(row) for row in await self._rows("find_progress", state_id)])

    async def note(self, state_id: str, status: Mapping[str, Any]) -> None:
        await self._rows("note_status", state_id, msgspec.json.encode(status).decode())

    async def known(self, state_id: str, message_ids: Sequence[str], now: int) -> set[str]:
        rows = await self._rows("list_taken", state_id, list(message_ids))
        old = [row[0] for row in rows if row[1] < now - SEEN_EVERY_MS]
        if old:
            await self._rows("see_taken", state_id, old, now)
        return {row[0] for row in rows}

    async def forget(self, state_id: str, before: int) -> int:
        return len(await self._rows("forget_taken", state_id, before))

    async def prune(self) -> int:
        return len(await self._rows("prune_states"))
