"""Triggers in PostgreSQL and SQLite. Tested in tests/conformance/test_triggers.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from noetl.ports.team import Audit
from noetl.ports.triggers import StoredTrigger
from noetl.stores.triggers.rows import position_of, position_row, trigger_of, trigger_row


class SqlDatabase(Protocol):
    """Statements by name: `PostgresDatabase` or the `Database` of a SQLite file."""

    async def rows(self, name: str, *values: Any) -> list[Any]: ...

    async def noted(self, act: Audit, name: str, *values: Any) -> list[Any] | int: ...


class SqlTriggers:
    """Triggers in the database of a store."""

    def __init__(self, database: SqlDatabase) -> None:
        self._rows = database.rows
        self._noted = database.noted

    async def add(self, trigger: StoredTrigger, act: Audit = None) -> bool:
        return bool(await self._noted(act, "put_trigger", *trigger_row(trigger)))

    async def save(self, trigger: StoredTrigger, act: Audit = None) -> bool:
        return bool(await self._noted(act, "save_trigger", *trigger_row(trigger), trigger.revision))

    async def remove(self, kind: str, trigger_id: str, act: Audit = None) -> bool:
        return bool(await self._noted(act, "remove_trigger", kind, trigger_id))

    async def trigger(self, kind: str, trigger_id: str) -> StoredTrigger | None:
        rows = await self._rows("find_trigger", kind, trigger_id)
        return trigger_of(tuple(rows[0])) if rows else None

    async def triggers(
        self,
        kind: str,
        *,
        path: str | None = None,
        owner: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[StoredTrigger]:
        return [trigger_of(tuple(row)) for row in await self._rows("list_triggers", kind, path, owner, after, limit)]

    async def position(self, name: str) -> tuple[dict[str, int], int]:
        return position_of([tuple(row) for row in await self._rows("find_position", name)])

    async def advance(self, name: str, position: Mapping[str, int], revision: int) -> bool:
        return bool(await self._noted(None, "put_position", *position_row(name, position, revision)))
