"""Users, groups and sessions in memory.

Tested in tests/conformance/test_people.py.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from noetl.ports.people import Group, Session, User
from noetl.ports.team import Audit
from noetl.stores.memory.tables import Tables


class MemoryPeople:
    """Users, groups and sessions of a store in memory."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._users, self._groups, self._sessions = tables.users, tables.groups, tables.sessions

    async def add_user(self, user: User, act: Audit = None) -> bool:
        if user.name in self._users:
            return False
        self._users[user.name] = user
        self._tables.note([act])
        return True

    async def save_user(self, user: User, act: Audit = None, *, ends_sessions: bool = False) -> bool:
        if user.name not in self._users:
            return False
        self._users[user.name] = user
        if ends_sessions:
            self._end_all(user.name)
        self._tables.note([act])
        return True

    async def remove_user(self, name: str, act: Audit = None) -> bool:
        if self._users.pop(name, None) is None:
            return False
        self._end_all(name)
        self._tables.note([act])
        return True

    def _end_all(self, name: str) -> None:
        for session in [one for one in self._sessions.values() if one.user == name]:
            del self._sessions[session.digest]

    async def user(self, name: str) -> User | None:
        return self._users.get(name)

    async def users(self) -> list[User]:
        return [user for _, user in sorted(self._users.items())]

    async def put_group(self, group: Group, act: Audit = None) -> None:
        self._groups[group.name] = group
        self._tables.note([act])

    async def remove_group(self, name: str, act: Audit = None) -> bool:
        if self._groups.pop(name, None) is None:
            return False
        for user in [one for one in self._users.values() if name in one.groups]:
            self._users[user.name] = replace(user, groups=tuple(one for one in user.groups if one != name))
        self._tables.note([act])
        return True

    async def groups(self) -> list[Group]:
        return [group for _, group in sorted(self._groups.items())]

    async def add_session(self, session: Session, act: Audit = None) -> None:
        for old in [one for one in self._sessions.values() if one.expires_at <= session.created_at]:
            del self._sessions[old.digest]
        self._sessions[session.digest] = session
        self._tables.note([act])

    async def session(self, digest: str) -> Session | None:
        return self._sessions.get(digest)

    async def end_session(self, digest: str, act: Audit = None) -> bool:
        was = self._sessions.pop(digest, None) is not None
        self._tables.note([act] if was else [])
        return was

    async def valid_sessions(self, digests: Collection[str], now: int) -> dict[str, User]:
        open_ones = (self._sessions[one] for one in digests if one in self._sessions)
        return {
            one.digest: self._users[one.user]
            for one in open_ones
            if one.expires_at > now and one.user in self._users and not self._users[one.user].disabled
        }
