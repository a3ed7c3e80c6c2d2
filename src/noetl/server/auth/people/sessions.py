"""Sessions of users: sign-in, the actor of a session, and its end.

The secret of a session is in a cookie that scripts cannot read; the store has its hash. A change that is authenticated by a
cookie must also send the session's CSRF token, which is derived from the secret. A session is cached for half a second, so that
a session that ended, or a disabled user, is refused on every server within a second. Tested in tests/server/api/test_users.py.
"""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from noetl.model.errors import InvalidInput
from noetl.ports import AuditEntry, Clock
from noetl.ports.people import Grant, Group, People, Session, User
from noetl.ports.team import Audit
from noetl.server.auth.gate import SESSION, Actor, Rights, csrf_token, digest
from noetl.server.auth.namespaces import namespaces_of
from noetl.server.auth.people.passwords import Passwords

ROLES: Final = ("viewer", "operator", "editor", "admin")  # of users, each with what the one before may
_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._@+-]{1,100}")  # `.` and `..` cannot stand in a URL
_KNOWN_MS: Final = 500
_MOST_KNOWN: Final = 1_024
_MOST_GRANTS: Final = 100
_MOST_SHOWN: Final = 20


class Sessions:
    """Sessions of the users of a store."""

    def __init__(self, people: People, clock: Clock, lifetime_s: float) -> None:
        self.passwords = Passwords()
        self._people = people
        self._clock = clock
        self._lifetime_ms = round(lifetime_s * 1000)
        self._known: OrderedDict[str, tuple[int, Actor]] = OrderedDict()

    async def check_password(self, name: str, password: str) -> User | None:
        """Return the user with this name and password, unless it is disabled."""
        user = await self._people.user(name)
        matches = await self.passwords.verify(password, user.password if user is not None else "")
        return user if user is not None and matches and not user.disabled else None

    async def admit(self, name: str, subject: str, grants: tuple[Grant, ...], groups: Sequence[str]) -> User | None:
        """Create or update the user that a provider vouches for, with its roles of now.

        Returns None if the name is that of another user, cannot be a name, or if the user is disabled.
        """
        if _NAME.fullmatch(name) is None:
            return None
        now, known = self._clock.now(), tuple(one for one in groups if _NAME.fullmatch(one))
        old = await self._people.user(name)
        if old is None:
            user = User(name, "", grants, known, False, now, "oidc", now, now, subject)
            act = AuditEntry(now, "oidc", "user.create", name, after=grants_text(grants))
            return user if await self._people.add_user(user, act) else None
        if old.provider != subject or old.disabled:
            return None
        is_same = (old.grants, old.groups) == (grants, known)
        user = replace(
            old, grants=grants, groups=known, signed_in_at=now, changed_at=old.changed_at if is_same else now
        )
        act = AuditEntry(now, "oidc", "user.change", name, before=grants_text(old.grants), after=grants_text(grants))
        return user if await self._people.save_user(user, None if is_same else act) else None

    async def begin(self, user: str, act: Audit) -> tuple[str, Session]:
        """Begin a session of a user; return its secret, which is stored nowhere."""
        now, secret = self._clock.now(), secrets.token_urlsafe(32)
        session = Session(digest(secret), user, now, now + self._lifetime_ms)
        await self._people.add_session(session, act)
        return secret, session

    async def actor(self, secret: str) -> Actor | None:
        """Return the user of a session as an actor; None if the session has ended."""
        name, now = digest(secret), self._clock.now()
        cached = self._known.get(name)
        if cached is not None and 0 <= now - cached[0] < _KNOWN_MS:
            return cached[1] if (cached[1].expires_at or 0) > now else None
        session = await self._people.session(name)
        user = await self._people.user(session.user) if session is not None and session.expires_at > now else None
        if session is None or user is None or user.disabled:
            return None
        actor = actor_of(user, await self._groups(user), session, csrf_token(secret))
        self._known[name] = (now, actor)
        self._known.move_to_end(name)
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return actor

    async def rights(self, digests: Sequence[str], now: int) -> dict[str, Rights]:
        """Return the rights that those of these sessions have which have not ended."""
        users = await self._people.valid_sessions(digests, now)
        groups = await self._groups(*users.values())
        return {name: _rights(user, groups) for name, user in users.items()}

    async def _groups(self, *users: User) -> dict[str, Group]:
        """Return the groups by name, if any of these users is in one."""
        return {one.name: one for one in await self._people.groups()} if any(user.groups for user in users) else {}

    def forget(self) -> None:
        """Clear the cache, after a session, a user or a group was changed."""
        self._known.clear()


def actor_of(user: User, groups: Mapping[str, Group], session: Session, csrf: str) -> Actor:
    """Return a user with the roles of its own and of its groups."""
    role, grants = _rights(user, groups)
    return Actor(user.name, role, SESSION + session.digest, grants=grants, csrf=csrf, expires_at=session.expires_at)


def _rights(user: User, groups: Mapping[str, Group]) -> Rights:
    given = [*user.grants, *(grant for name in user.groups if name in groups for grant in groups[name].grants)]
    everywhere = max((ROLES.index(one.role) for one in given if not one.namespace), default=-1)
    grants = tuple(dict.fromkeys((one.namespace, one.role) for one in given if one.namespace))
    return ROLES[everywhere] if everywhere >= 0 else "" if grants else "none", grants


def checked_name(name: str) -> str:
    """Return the name of a user or a group. Raises InvalidInput."""
    if _NAME.fullmatch(name) is None:
        raise InvalidInput(
            f"{name[:40]!r} is no name. Use 1 to 100 letters, digits and any of . _ @ + -, but not `.` or `..`."
        )
    return name


async def known_groups(people: People, given: Iterable[str], had: Collection[str] = ()) -> tuple[str, ...]:
    """Return groups to be in, each once. Raises InvalidInput for an unknown one.

    A user may stay in a group of its identity provider that is not stored here.
    """
    names = tuple(checked_name(one) for one in dict.fromkeys(given))
    if not names:
        return names
    known = [group.name for group in await people.groups()]
    for name in names:
        if name not in known and name not in had:
            others = f" The groups are {', '.join(known[:_MOST_SHOWN])}." if known else ""
            raise InvalidInput(f"There is no group {name}. Create it with `noetl group set {name}`.{others}")
    return names


def checked_grants(given: Iterable[Grant]) -> tuple[Grant, ...]:
    """Return grants with their namespaces in one spelling. Raises InvalidInput."""
    found: dict[Grant, None] = {}
    for one in given:
        if one.role not in ROLES:
            raise InvalidInput(f"Unknown role `{one.role[:40]}` of a user or a group. Use one of {', '.join(ROLES)}.")
        namespace = namespaces_of([one.namespace])[0] if one.namespace else ""
        found[Grant(one.role, namespace)] = None
    if len(found) > _MOST_GRANTS:
        raise InvalidInput(f"More than {_MOST_GRANTS} roles. Use groups, or shorter namespaces.")
    return tuple(found)


def grants_text(grants: Sequence[Grant]) -> str:
    """Return roles as one text, for the audit trail."""
    return ", ".join(f"{one.role} in {one.namespace}" if one.namespace else one.role for one in grants) or "no role"
