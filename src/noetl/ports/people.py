"""Port of users, groups and sessions.

Every adapter passes tests/conformance/test_people.py. A user has roles of its own and those of its groups. A session is known by the digest of its secret, as a token is.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import msgspec

from noetl.ports.team import Audit


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """Role of a user or a group, everywhere or on a namespace."""

    role: str
    namespace: str = ""  # empty: everywhere


class User(msgspec.Struct, frozen=True, omit_defaults=True):
    """Stored user."""

    name: str
    password: str = ""  # hash; empty: no sign-in with a password
    grants: tuple[Grant, ...] = ()
    groups: tuple[str, ...] = ()
    disabled: bool = False
    created_at: int = 0
    created_by: str = ""
    changed_at: int = 0
    signed_in_at: int | None = None
    provider: str = ""  # issuer of OpenID Connect that vouches for it; empty: a local user


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    """Stored group of users."""

    name: str
    grants: tuple[Grant, ...] = ()
    created_at: int = 0
    created_by: str = ""


class Session(msgspec.Struct, frozen=True, omit_defaults=True):
    """Stored session of a user's browser, without its secret."""

    digest: str  # SHA-256 of the secret
    user: str
    created_at: int
    expires_at: int


class People(Protocol):
    """Users, groups and sessions."""

    async def add_user(self, user: User, act: Audit = None) -> bool:
        """Add a user; False if the name exists."""

    async def save_user(self, user: User, act: Audit = None, *, ends_sessions: bool = False) -> bool:
        """Replace a user; False if it is unknown."""

    async def remove_user(self, name: str, act: Audit = None) -> bool:
        """Delete a user with its sessions; False if it is unknown."""

    async def user(self, name: str) -> User | None: ...

    async def users(self) -> list[User]:
        """List users by name."""

    async def put_group(self, group: Group, act: Audit = None) -> None:
        """Add a group, or replace the one with its name."""

    async def remove_group(self, name: str, act: Audit = None) -> bool:
        """Delete a group, and remove its members from it; False if it is unknown."""

    async def groups(self) -> list[Group]:
        """List groups by name."""

    async def add_session(self, session: Session, act: Audit = None) -> None:
        """Add a session; delete those that have expired when it begins."""

    async def session(self, digest: str) -> Session | None: ...

    async def end_session(self, digest: str, act: Audit = None) -> bool:
        """Delete a session; False if it is unknown."""

    async def valid_sessions(self, digests: Collection[str], now: int) -> dict[str, User]:
        """Return the users of those that have not ended, but for disabled users."""
