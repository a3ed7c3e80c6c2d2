"""Outbox in a SQLite file. Tested in tests/conformance/test_outbox.py."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.audit.chain import with_references
from noetl.ports.outbox import OutboxMessage
from noetl.ports.team import Audit
from noetl.stores.common.outbox_rows import message_of, row_of
from noetl.stores.common.queries import queries
from noetl.stores.sqlite.database import Database
from noetl.stores.sqlite.rows import write_audit

_SQL = queries("sqlite")


class SqliteOutbox:
    """Messages to other systems, in the file of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, message: OutboxMessage, now: int) -> int:
        def job(connection: sqlite3.Connection) -> int:
            connection.execute(_SQL["put_outbox"], row_of(msgspec.structs.replace(message, created_at=now)))
            return int(connection.execute(_SQL["number_of_outbox"], (message.key,)).fetchone()[0])

        return await self._database.write(job)

    async def claim(self, now: int, until: int, most: int) -> list[OutboxMessage]:
        if not await self._rows("due_outbox", now):  # looking takes no write lock
            return []

        def job(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(_SQL["claim_outbox"], (now, until, most)).fetchall()

        return sorted(map(message_of, await self._database.write(job)), key=lambda one: one.number)

    async def delivered(self, number: int, attempt: int, now: int) -> bool:
        return await self._write("deliver_outbox", number, attempt, now)

    async def failed(self, number: int, attempt: int, error: str, again_at: int | None) -> bool:
        state = "dead" if again_at is None else "pending"
        return await self._write("fail_outbox", number, attempt, state, again_at, error)

    async def message(self, number: int) -> OutboxMessage | None:
        rows = await self._rows("find_outbox", number)
        return message_of(rows[0]) if rows else None

    async def messages(self, state: str | None, before: int | None, limit: int) -> list[OutboxMessage]:
        return [message_of(row) for row in await self._rows("list_outbox", state, before, limit)]

    async def again(self, number: int, now: int, act: Audit = None) -> bool:
        return await self._change_open("retry_outbox", number, now, "pending", act)

    async def discard(self, number: int, reason: str, act: Audit = None) -> bool:
        return await self._change_open("discard_outbox", number, reason, "discarded", act)

    async def waiting(self) -> Mapping[str, int]:
        [(pending, dead, next_at)] = await self._rows("count_outbox")
        return {"pending": pending, "dead": dead, "next_at": next_at or 0}

    async def forget(self, before: int) -> int:
        def job(connection: sqlite3.Connection) -> int:
            return connection.execute(_SQL["forget_outbox"], (before,)).rowcount

        return await self._database.write(job)

    async def _rows(self, name: str, *parts: Any) -> list[Any]:
        return await self._database.run(lambda connection: connection.execute(_SQL[name], parts).fetchall())

    async def _change_open(self, name: str, number: int, value: Any, state: str, act: Audit) -> bool:
        def job(connection: sqlite3.Connection) -> bool:
            row = connection.execute(_SQL["find_outbox"], (number,)).fetchone()
            if connection.execute(_SQL[name], (number, value)).rowcount == 0:
                return False
            write_audit(connection, [with_references(act, message_of(row).state, state)])
            return True

        return await self._database.write(job)

    async def _write(self, name: str, *parts: Any) -> bool:
        return await self._database.write(lambda connection: connection.execute(_SQL[name], parts).rowcount > 0)
