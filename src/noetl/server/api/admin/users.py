"""Users and their roles. Tested in tests/server/api/test_users.py."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from noetl.ports.people import Grant, User
from noetl.server.auth.people.sessions import checked_grants, checked_name, grants_text, known_groups
from noetl.server.http.endpoint import Call, Noun
from noetl.server.operations.people import user_row
from noetl.server.problems import Refusal, not_found
from noetl.wire.answers import Removed
from noetl.wire.people import GrantAsked, UserAsked, UserPatch, UserRow, UserRows

noun = Noun("users", "Users who sign in.")


@noun.route(
    "POST",
    "/api/users",
    "admin",
    status=201,
    act="user.create",
    example={
        "name": "ada",
        "password": "correct horse battery",
        "grants": [{"role": "editor", "namespace": "team-a/"}],
    },
    problems=(409, 422),
)
async def create(call: Call, body: UserAsked) -> UserRow:
    """Create a user."""
    now, grants = call.services.clock.now(), grants_of(body.grants)
    password = await call.services.sessions.passwords.hash(body.password) if body.password else ""
    groups = await known_groups(call.services.people, body.groups)
    user = User(checked_name(body.name), password, grants, groups, False, now, call.actor.name, now)
    if not await call.services.people.add_user(user, call.act(user.name, is_now=grants_text(grants), groups=groups)):
        detail = f"There is a user `{user.name}`."
        raise Refusal(409, "conflict", detail, where="$.name", fix="Change it with PATCH, or choose another name.")
    return user_row(user)


@noun.route("GET", "/api/users", "admin")
async def listed(call: Call) -> UserRows:
    """List users, without passwords."""
    return UserRows(users=[user_row(user) for user in await call.services.people.users()])


@noun.route("GET", "/api/users/{name}", "admin", problems=(404,))
async def one(call: Call, name: str) -> UserRow:
    """Return a user."""
    return user_row(await _found(call, name))


@noun.route("PATCH", "/api/users/{name}", "admin", act="user.change", example={"disabled": True}, problems=(404, 422))
async def change(call: Call, name: str, body: UserPatch) -> UserRow:
    """Change a user. A new password, or disabling it, ends its sessions."""
    old = await _found(call, name)
    new = replace(old, changed_at=call.services.clock.now())
    if body.password is not UNSET:
        new = replace(new, password=await call.services.sessions.passwords.hash(body.password))
    if body.grants is not UNSET:
        new = replace(new, grants=grants_of(body.grants))
    if body.groups is not UNSET:
        new = replace(new, groups=await known_groups(call.services.people, body.groups, old.groups))
    if body.disabled is not UNSET:
        new = replace(new, disabled=body.disabled)
    fields = [field for field in body.__struct_fields__ if getattr(body, field) is not UNSET]
    act = call.act(name, was=_state(old), is_now=_state(new), fields=fields, groups=new.groups)
    ends = new.password != old.password or new.disabled
    if not await call.services.people.save_user(new, act, ends_sessions=ends):
        raise _missing(name)
    await call.services.gate.forget()
    return user_row(new)


@noun.route("DELETE", "/api/users/{name}", "admin", act="user.delete", problems=(404,))
async def remove(call: Call, name: str) -> Removed:
    """Delete a user and end its sessions."""
    old = await _found(call, name)
    if not await call.services.people.remove_user(name, call.act(name, was=_state(old))):
        raise _missing(name)
    await call.services.gate.forget()
    return Removed(removed=1)


def grants_of(given: Sequence[GrantAsked]) -> tuple[Grant, ...]:
    """Return the roles of a request. Raises InvalidInput."""
    return checked_grants(Grant(one.role, one.namespace) for one in given)


async def _found(call: Call, name: str) -> User:
    user = await call.services.people.user(name)
    if user is None:
        raise _missing(name)
    return user


def _missing(name: str) -> Refusal:
    return not_found(f"No user `{name[:80]}`.", "GET /api/users lists the users.")


def _state(user: User) -> str:
    return f"{'disabled' if user.disabled else 'enabled'}, {grants_text(user.grants)}"
