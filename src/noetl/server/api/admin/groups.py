"""Groups of users and their roles. Tested in tests/server/api/test_users.py."""

from __future__ import annotations

from noetl.ports.people import Group
from noetl.server.api.admin.users import grants_of
from noetl.server.auth.people.sessions import checked_name, grants_text
from noetl.server.http.endpoint import Call, Noun
from noetl.server.operations.people import group_row, group_rows
from noetl.server.problems import not_found
from noetl.wire.answers import Removed
from noetl.wire.people import GroupAsked, GroupRow, GroupRows

noun = Noun("groups", "Groups of users.")


@noun.route(
    "PUT",
    "/api/groups/{name}",
    "admin",
    act="group.put",
    example={"grants": [{"role": "operator", "namespace": "team-a/"}]},
    problems=(422,),
)
async def put(call: Call, name: str, body: GroupAsked) -> GroupRow:
    """Create a group, or replace its roles."""
    services = call.services
    old = next((one for one in await services.people.groups() if one.name == name), None)
    at, by = (old.created_at, old.created_by) if old is not None else (services.clock.now(), call.actor.name)
    group = Group(checked_name(name), grants_of(body.grants), at, by)
    was = "" if old is None else grants_text(old.grants)
    await services.people.put_group(group, call.act(name, was=was, is_now=grants_text(group.grants)))
    await services.gate.forget()
    return group_row(group, await services.people.users())


@noun.route("GET", "/api/groups", "admin")
async def listed(call: Call) -> GroupRows:
    """List groups with their roles and members."""
    return GroupRows(groups=await group_rows(call.services.people))


@noun.route("DELETE", "/api/groups/{name}", "admin", act="group.delete", problems=(404,))
async def remove(call: Call, name: str) -> Removed:
    """Delete a group: its members leave it and lose its roles."""
    if not await call.services.people.remove_group(name, call.act(name)):
        raise not_found(f"No group `{name[:80]}`.", "GET /api/groups lists the groups.")
    await call.services.gate.forget()
    return Removed(removed=1)
