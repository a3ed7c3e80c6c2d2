"""Create and change users and groups, for the API and for commands on a store.

Tested in tests/server/api/test_users.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from noetl.model.errors import InvalidInput
from noetl.ports.people import Grant, Group, People, User
from noetl.server.auth.people.sessions import checked_name
from noetl.wire.people import GrantRow, GroupRow, UserRow

_MOST_SHOWN: Final = 20


def user_row(user: User) -> UserRow:
    """Return a user as callers see it."""
    names = ("name", "disabled", "provider", "created_at", "created_by", "changed_at", "signed_in_at")
    fields: dict[str, Any] = {name: getattr(user, name) for name in names}
    return UserRow(**fields, grants=grant_rows(user.grants), groups=list(user.groups), has_password=bool(user.password))


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


def group_row(group: Group, users: Sequence[User]) -> GroupRow:
    """Return a group with its members."""
    return GroupRow(
        name=group.name,
        grants=grant_rows(group.grants),
        members=[user.name for user in users if group.name in user.groups],
        created_at=group.created_at,
        created_by=group.created_by,
    )


async def group_rows(people: People) -> list[GroupRow]:
    """List the groups with their members."""
    users = await people.users()
    return [group_row(group, users) for group in await people.groups()]


def grant_rows(grants: Sequence[Grant]) -> list[GrantRow]:
    """Return roles as callers see them."""
    return [GrantRow(role=one.role, namespace=one.namespace) for one in grants]
