"""Users, groups and sessions in PostgreSQL.

Tested in tests/conformance/test_people.py.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from noetl.ports.people import Group, Session, User
from noetl.ports.team import Audit
from noetl.stores.common.queries import queries
from noetl.stores.postgres.database import PostgresDatabase
from noetl.stores.postgres.rows import text

_SQL = queries("postgres")
_decode = msgspec.json.decode
_Statement = tuple[str, tuple[Any, ...]]


class PostgresPeople:
    """Users, groups and sessions in the database of a store."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._rows = database.rows

    async def add_user(self, user: User, act: Audit = None) -> bool:
        return await self._write(act, ("put_user", (user.name, user.disabled, text(user))))

    async def save_user(self, user: User, act: Audit = None, *, ends_sessions: bool = False) -> bool:
        more: list[_Statement] = [("end_sessions_of", (user.name,))] if ends_sessions else []
        return await self._write(act, ("save_user", (user.name, user.disabled, text(user))), *more)

    async def remove_user(self, name: str, act: Audit = None) -> bool:
        return await self._write(act, ("remove_user", (name,)), ("end_sessions_of", (name,)))

    async def user(self, name: str) -> User | None:
        rows = await self._rows("find_user", name)
        return _decode(rows[0][0], type=User) if rows else None

    async def users(self) -> list[User]:
        return [_decode(row[0], type=User) for row in await self._rows("list_users")]

    async def put_group(self, group: Group, act: Audit = None) -> None:
        await self._write(act, ("put_group", (group.name, text(group))))

    async def remove_group(self, name: str, act: Audit = None) -> bool:
        return await self._write(act, ("remove_group", (name,)))

    async def groups(self) -> list[Group]:
        return [_decode(row[0], type=Group) for row in await self._rows("list_groups")]

    async def add_session(self, session: Session, act: Audit = None) -> None:
        row = (session.digest, session.user, session.created_at, session.expires_at)
        await self._write(act, ("put_session", row), ("forget_sessions", (session.created_at,)))

    async def session(self, digest: str) -> Session | None:
        rows = await self._rows("find_session", digest)
        return Session(*rows[0]) if rows else None

    async def end_session(self, digest: str, act: Audit = None) -> bool:
        return await self._write(act, ("end_session", (digest,)))

    async def valid_sessions(self, digests: Collection[str], now: int) -> set[str]:
        return {str(row[0]) for row in await self._rows("valid_sessions", list(digests), now)}

    async def _write(self, act: Audit, first: _Statement, *more: _Statement) -> bool:
        """Run statements and audit them, if the first one changes a row."""
        async with self._database.transaction() as connection:
            if not await connection.fetch(_SQL[first[0]], *first[1]):
                return False
            for name, values in more:
                await connection.execute(_SQL[name], *values)
            await self._database.note(connection, act)
        return True
