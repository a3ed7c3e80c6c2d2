"""Outbox in PostgreSQL. Tested in tests/conformance/test_outbox.py."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from noetl.ports.outbox import OutboxMessage
from noetl.ports.team import Audit
from noetl.stores.common.outbox_rows import message_of, row_of
from noetl.stores.postgres.database import PostgresDatabase


class PostgresOutbox:
    """Messages to other systems, in the database of a store."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._rows = database.rows
        self._noted = database.noted

    async def put(self, message: OutboxMessage, now: int) -> int:
        made = await self._rows("put_outbox", *row_of(msgspec.structs.replace(message, created_at=now)))
        return int((made or await self._rows("number_of_outbox", message.key))[0][0])

    async def claim(self, now: int, until: int, most: int) -> list[OutboxMessage]:
        found = [message_of(tuple(row)) for row in await self._rows("claim_outbox", now, until, most)]
        return sorted(found, key=lambda one: one.number)

    async def delivered(self, number: int, attempt: int, now: int) -> bool:
        return bool(await self._rows("deliver_outbox", number, attempt, now))

    async def failed(self, number: int, attempt: int, error: str, again_at: int | None) -> bool:
        state = "dead" if again_at is None else "pending"
        return bool(await self._rows("fail_outbox", number, attempt, state, again_at, error))

    async def message(self, number: int) -> OutboxMessage | None:
        rows = await self._rows("find_outbox", number)
        return message_of(tuple(rows[0])) if rows else None

    async def messages(self, state: str | None, before: int | None, limit: int) -> list[OutboxMessage]:
        return [message_of(tuple(row)) for row in await self._rows("list_outbox", state, before, limit)]

    async def again(self, number: int, now: int, act: Audit = None) -> bool:
        return bool(await self._noted(act, "retry_outbox", number, now, refer=lambda rows: tuple(rows[0])))

    async def discard(self, number: int, reason: str, act: Audit = None) -> bool:
        return bool(await self._noted(act, "discard_outbox", number, reason, refer=lambda rows: tuple(rows[0])))

    async def waiting(self) -> Mapping[str, int]:
        [row] = await self._rows("count_outbox")
        return {"pending": row[0], "dead": row[1], "next_at": row[2] or 0}

    async def forget(self, before: int) -> int:
        return len(await self._rows("forget_outbox", before))
