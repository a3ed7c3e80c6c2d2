"""Create and change users and groups, for the API and for commands on a store.

Tested in tests/server/api/test_users.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noetl.ports.people import Grant, Group, People, User
from noetl.wire.people import GrantRow, GroupRow, UserRow


def user_row(user: User) -> UserRow:
    """Return a user as callers see it."""
    names = ("name", "disabled", "provider", "created_at", "created_by", "changed_at", "signed_in_at")
    fields: dict[str, Any] = {name: getattr(user, name) for name in names}
    return UserRow(**fields, grants=grant_rows(user.grants), groups=list(user.groups), has_password=bool(user.password))


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
