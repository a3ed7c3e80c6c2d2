"""Users, groups and sessions in a database; a dialect runs the statements.

Tested in tests/conformance/test_people.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

import msgspec

from noetl.ports.people import Group, Session, User
from noetl.ports.team import Audit

Statement = tuple[str, tuple[Any, ...]]  # name and values
_decode = msgspec.json.decode


class SqlPeople(ABC):
    """Users, groups and sessions: the statements of each operation."""

    @abstractmethod
    async def _rows(self, name: str, *values: Any) -> list[Any]:
        """Return the rows of a statement."""

    @abstractmethod
    async def _write(self, act: Audit, first: Statement, *more: Statement) -> bool:
        """Run statements and audit them, if the first one changes a row."""

    @abstractmethod
    def _list(self, texts: Collection[str]) -> Any:
        """Return texts as one value of a statement."""

    async def add_user(self, user: User, act: Audit = None) -> bool:
        return await self._write(act, ("put_user", (user.name, user.disabled, _text(user))))

    async def save_user(self, user: User, act: Audit = None, *, ends_sessions: bool = False) -> bool:
        more: list[Statement] = [("end_sessions_of", (user.name,))] if ends_sessions else []
        return await self._write(act, ("save_user", (user.name, user.disabled, _text(user))), *more)

    async def remove_user(self, name: str, act: Audit = None) -> bool:
        return await self._write(act, ("remove_user", (name,)), ("end_sessions_of", (name,)))

    async def user(self, name: str) -> User | None:
        rows = await self._rows("find_user", name)
        return _decode(rows[0][0], type=User) if rows else None

    async def users(self) -> list[User]:
        return [_decode(row[0], type=User) for row in await self._rows("list_users")]

    async def put_group(self, group: Group, act: Audit = None) -> None:
        await self._write(act, ("put_group", (group.name, _text(group))))

    async def remove_group(self, name: str, act: Audit = None) -> bool:
        return await self._write(act, ("remove_group", (name,)), ("leave_group", (name,)))

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

    async def valid_sessions(self, digests: Collection[str], now: int) -> dict[str, User]:
        rows = await self._rows("valid_sessions", self._list(digests), now)
        return {str(digest): _decode(data, type=User) for digest, data in rows}


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
