"""Bodies and answers about users, groups and sessions. Tested in tests/server."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from noetl.wire.answers import Answer
from noetl.wire.requests import Asked


class GrantAsked(Asked, frozen=True):
    """A role, everywhere or on a namespace."""

    role: str
    namespace: str = ""


class GrantRow(Answer, frozen=True):
    """A role, everywhere or on a namespace."""

    role: str
    namespace: str


class SignIn(Asked, frozen=True):
    """Name and password of a user, or a token."""

    user: Annotated[str, Meta(max_length=200)] = ""
    password: Annotated[str, Meta(max_length=1_000)] = ""
    token: Annotated[str, Meta(max_length=1_000)] = ""


class OidcQuery(Asked, frozen=True, forbid_unknown_fields=False):
    """What an OpenID Connect provider sends back."""

    state: str = ""
    code: str = ""
    error: str = ""


class Me(Answer, frozen=True):
    """The caller: roles, namespaces, and when the session ends."""

    name: str
    role: str  # everywhere; empty or `none`: only where `grants` say
    grants: list[GrantRow]
    kind: str  # token, session, local
    expires_at: int | None = None
    csrf: str = ""  # header X-CSRF-Token of changes; empty if none is needed


class UserAsked(Asked, frozen=True):
    """A user to create."""

    name: str
    password: Annotated[str, Meta(max_length=1_000)] = ""
    grants: tuple[GrantAsked, ...] = ()
    groups: tuple[str, ...] = ()


class UserPatch(Asked, frozen=True):
    """Fields of a user to change."""

    password: Annotated[str, Meta(max_length=1_000)] | UnsetType = UNSET
    grants: tuple[GrantAsked, ...] | UnsetType = UNSET
    groups: tuple[str, ...] | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET


class UserRow(Answer, frozen=True):
    """A user, without its password."""

    name: str
    grants: list[GrantRow]
    groups: list[str]
    disabled: bool
    has_password: bool
    provider: str
    created_at: int
    created_by: str
    changed_at: int
    signed_in_at: int | None


class UserRows(Answer, frozen=True):
    """The users."""

    users: list[UserRow]


class GroupAsked(Asked, frozen=True):
    """The roles of a group."""

    grants: tuple[GrantAsked, ...] = ()


class GroupRow(Answer, frozen=True):
    """A group with its roles and members."""

    name: str
    grants: list[GrantRow]
    members: list[str]
    created_at: int
    created_by: str


class GroupRows(Answer, frozen=True):
    """The groups."""

    groups: list[GroupRow]
