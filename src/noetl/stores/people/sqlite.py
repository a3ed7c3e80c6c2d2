"""Users, groups and sessions in a SQLite file.

Tested in tests/conformance/test_people.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Any

from noetl.ports.team import Audit
from noetl.stores.common.queries import queries
from noetl.stores.people.sql import SqlPeople, Statement
from noetl.stores.sqlite.database import Database
from noetl.stores.sqlite.rows import text, write_audit

_SQL = queries("sqlite")


class SqlitePeople(SqlPeople):
    """Users, groups and sessions in the file of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def _rows(self, name: str, *values: Any) -> list[Any]:
        return await self._database.run(lambda connection: connection.execute(_SQL[name], values).fetchall())

    async def _write(self, act: Audit, first: Statement, *more: Statement) -> bool:
        def job(connection: sqlite3.Connection) -> bool:
            if not connection.execute(_SQL[first[0]], first[1]).rowcount:
                return False
            for name, values in more:
                connection.execute(_SQL[name], values)
            write_audit(connection, [act])
            return True

        return await self._database.write(job)

    def _list(self, texts: Collection[str]) -> str:
        return text(list(texts))
