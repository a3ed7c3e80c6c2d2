"""Triggers in a SQLite file. Tested in tests/conformance/test_triggers.py."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from noetl.ports.team import Audit
from noetl.ports.triggers import StoredTrigger
from noetl.stores.common.queries import queries
from noetl.stores.sqlite.database import Database
from noetl.stores.sqlite.rows import write_audit
from noetl.stores.triggers.rows import position_of, position_row, trigger_of, trigger_row

_SQL = queries("sqlite")


class SqliteTriggers:
    """Triggers in the file of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, trigger: StoredTrigger, act: Audit = None) -> bool:
        return await self._write("put_trigger", *trigger_row(trigger), act=act)

    async def save(self, trigger: StoredTrigger, act: Audit = None) -> bool:
        return await self._write("save_trigger", *trigger_row(trigger), trigger.revision, act=act)

    async def remove(self, kind: str, trigger_id: str, act: Audit = None) -> bool:
        return await self._write("remove_trigger", kind, trigger_id, act=act)

    async def trigger(self, kind: str, trigger_id: str) -> StoredTrigger | None:
        rows = await self._rows("find_trigger", kind, trigger_id)
        return trigger_of(rows[0]) if rows else None

    async def triggers(
        self,
        kind: str,
        *,
        path: str | None = None,
        owner: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[StoredTrigger]:
        return [trigger_of(row) for row in await self._rows("list_triggers", kind, path, owner, after, limit)]

    async def position(self, name: str) -> tuple[dict[str, int], int]:
        return position_of(await self._rows("find_position", name))

    async def advance(self, name: str, position: Mapping[str, int], revision: int) -> bool:
        return await self._write("put_position", *position_row(name, position, revision))

    async def _rows(self, name: str, *parts: Any) -> list[Any]:
        return await self._database.run(lambda connection: connection.execute(_SQL[name], parts).fetchall())

    async def _write(self, name: str, *parts: Any, act: Audit = None) -> bool:
        def job(connection: sqlite3.Connection) -> bool:
            changed = connection.execute(_SQL[name], parts).rowcount > 0
            write_audit(connection, [act] if changed else [])
            return changed

        return await self._database.write(job)
