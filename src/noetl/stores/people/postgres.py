"""Users, groups and sessions in PostgreSQL.

Tested in tests/conformance/test_people.py.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from noetl.ports.team import Audit
from noetl.stores.common.queries import queries
from noetl.stores.people.sql import SqlPeople, Statement
from noetl.stores.postgres.database import PostgresDatabase

_SQL = queries("postgres")


class PostgresPeople(SqlPeople):
    """Users, groups and sessions in the database of a store."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def _rows(self, name: str, *values: Any) -> list[Any]:
        return await self._database.rows(name, *values)

    async def _write(self, act: Audit, first: Statement, *more: Statement) -> bool:
        async with self._database.transaction() as connection:
            if not await connection.fetch(_SQL[first[0]], *first[1]):
                return False
            for name, values in more:
                await connection.execute(_SQL[name], *values)
            await self._database.note(connection, act)
        return True

    def _list(self, texts: Collection[str]) -> list[str]:
        return list(texts)
