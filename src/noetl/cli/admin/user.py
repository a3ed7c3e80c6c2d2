"""`noetl user`: create, list, disable and delete users, and set passwords.

Tested in tests/acceptance/admin/test_user_cli.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place, from_file
from noetl.cli.output.format import format_time, to_json
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.ports.people import Grant, People, User
    from noetl.wire.people import UserRow

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the user.")]
Role = Annotated[
    list[str] | None,
    typer.Option("--role", metavar="ROLE", help="Role: viewer, operator, editor or admin. [default: none]"),
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option("--namespace", metavar="PREFIX", help="Limit the role to paths such as team-a/. Repeatable."),
]
Groups = Annotated[list[str] | None, typer.Option("--group", metavar="NAME", help="Group to be in. Repeatable.")]
Password = Annotated[
    str | None,
    typer.Option(
        "--password",
        metavar="@FILE",
        help="File with the password. [default: asks for it]",
        callback=from_file,
        show_default=False,
    ),
]

command = command_group("Create, list, disable and delete users of the local store or of a server.")


@command.command("create")
def create(
    name: Name,
    role: Role = None,
    namespace: Namespaces = None,
    group: Groups = None,
    password: Password = None,
    no_password: Annotated[
        bool, typer.Option("--no-password", help="Create it without one: it cannot sign in with a password.")
    ] = False,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Create a user with roles, groups and a password."""

    async def job() -> None:
        from noetl.cli.runtime.target import connect, server_of

        grants, secret = grants_of(role, namespace), "" if no_password else _asked(password)
        server = server_of(store)
        made: User | UserRow
        if server is None:
            made = await _create(store, name, secret, grants, group or ())
        else:
            async with connect(server) as client:
                made = await client.create_user(name, secret, plain(grants), group or ())
        _told(made.name, "created", json)

    call(job)


@command.command("list")
def list_users(json: AsJson = False, store: Place = None) -> None:
    """List users with their roles, groups and last sign-in."""

    async def job() -> None:
        from noetl.cli.runtime.target import connect, server_of
        from noetl.server.operations.people import user_row

        server = server_of(store)
        if server is None:
            async with open_local(store) as people:
                rows = [user_row(user) for user in await people.users()]
        else:
            async with connect(server) as client:
                rows = await client.users()
        for row in rows:
            echo(to_json(row) if json else _line(row))
        if not rows:
            echo("no users", err=True)

    call(job)


@command.command("set")
def set_roles(
    name: Name,
    role: Role = None,
    namespace: Namespaces = None,
    group: Groups = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Replace the roles and groups of a user."""

    async def job() -> None:
        grants = grants_of(role, namespace)
        await _change(store, name, {"grants": grants, "groups": tuple(group or ())})
        _told(name, "changed", json)

    call(job)


@command.command("passwd")
def passwd(name: Name, password: Password = None, json: AsJson = False, store: Place = None) -> None:
    """Set the password of a user and end its sessions."""

    async def job() -> None:
        await _change(store, name, {"password": _asked(password)})
        _told(name, "changed", json)

    call(job)


@command.command("disable")
def disable(name: Name, json: AsJson = False, store: Place = None) -> None:
    """Disable a user and end its sessions within a second."""

    async def job() -> None:
        await _change(store, name, {"disabled": True})
        _told(name, "disabled", json)

    call(job)


@command.command("enable")
def enable(name: Name, json: AsJson = False, store: Place = None) -> None:
    """Enable a disabled user."""

    async def job() -> None:
        await _change(store, name, {"disabled": False})
        _told(name, "enabled", json)

    call(job)


@command.command("delete")
def delete(name: Name, json: AsJson = False, store: Place = None) -> None:
    """Delete a user and end its sessions."""

    async def job() -> None:
        from noetl.cli.runtime.target import connect, server_of

        server = server_of(store)
        if server is None:
            async with open_local(store) as people:
                if not await people.remove_user(name, entry("user.delete", name)):
                    raise _missing(name)
        else:
            async with connect(server) as client:
                await client.delete_user(name)
        _told(name, "deleted", json)

    call(job)


@asynccontextmanager
async def open_local(store: str | None) -> AsyncIterator[People]:
    """Open the users of the local store."""
    from noetl.cli.runtime.store import local_settings
    from noetl.wiring.embedded import open_people, open_store

    opened = open_store(local_settings(store))
    try:
        yield open_people(opened)
    finally:
        await opened.close()


def entry(action: str, entity: str, before: str = "", after: str = "") -> Any:
    """Return the audit entry of a command."""
    from noetl.cli.runtime.environment import actor
    from noetl.ports import AuditEntry

    return AuditEntry(int(time() * 1000), actor(), action, entity, before=before, after=after)


def grants_of(roles: Sequence[str] | None, namespaces: Sequence[str] | None) -> tuple[Grant, ...]:
    """Return the roles that options name. Raises InvalidInput."""
    from noetl.ports.people import Grant
    from noetl.server.auth.people.sessions import checked_grants

    role = only_role(roles, "Give a user several roles through groups: one `noetl group set GROUP --role ROLE` each.")
    if role is None:
        if namespaces:
            raise InvalidInput("--namespace limits a role. Add --role ROLE.")
        return ()
    return checked_grants(Grant(role, namespace) for namespace in namespaces or ("",))


def only_role(roles: Sequence[str] | None, instead: str) -> str | None:
    """Return the role of an option that counts once. Raises InvalidInput."""
    if roles and len(roles) > 1:
        given = " ".join(f"--role {one}" for one in roles)
        raise InvalidInput(f"Several roles given: {given}. One --role counts for every --namespace. {instead}")
    return roles[0] if roles else None


def plain(grants: Sequence[Grant]) -> list[dict[str, str]]:
    """Return roles as a request sends them."""
    return [{"role": one.role, "namespace": one.namespace} for one in grants]


def _asked(given: str | None) -> str:
    """Return a password: of the option, or typed twice. Raises InvalidInput."""
    from noetl.server.auth.people.passwords import checked_password

    if given is None:
        try:
            given = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        except typer.Abort:
            raise InvalidInput("No password given. Type it in a terminal, or add --password @FILE.") from None
    return checked_password(given.strip("\r\n"))


async def _create(
    store: str | None, name: str, password: str, grants: tuple[Grant, ...], groups: Sequence[str]
) -> User:
    from noetl.ports.people import User
    from noetl.server.auth.people.passwords import hash_password
    from noetl.server.auth.people.sessions import checked_name, grants_text, known_groups

    now, hashed = int(time() * 1000), hash_password(password) if password else ""
    async with open_local(store) as people:
        named = await known_groups(people, groups)
        user = User(checked_name(name), hashed, grants, named, False, now, "cli", now)
        if not await people.add_user(user, entry("user.create", name, "", grants_text(grants))):
            raise InvalidInput(f"There is a user {name}. Change it with `noetl user set {name}`.")
    return user


async def _change(store: str | None, name: str, fields: dict[str, Any]) -> None:
    from msgspec.structs import replace

    from noetl.cli.runtime.target import connect, server_of
    from noetl.server.auth.people.passwords import hash_password
    from noetl.server.auth.people.sessions import known_groups

    server = server_of(store)
    if server is not None:
        if "grants" in fields:
            fields = {**fields, "grants": plain(fields["grants"])}
        async with connect(server) as client:
            await client.change_user(name, fields)
        return
    ends = "password" in fields or fields.get("disabled", False)
    if "password" in fields:
        fields = {**fields, "password": hash_password(fields["password"])}
    async with open_local(store) as people:
        old = await people.user(name)
        if old is None:
            raise _missing(name)
        if "groups" in fields:
            fields = {**fields, "groups": await known_groups(people, fields["groups"], old.groups)}
        new = replace(old, **fields, changed_at=int(time() * 1000))
        await people.save_user(new, entry("user.change", name), ends_sessions=ends)


def _missing(name: str) -> InvalidInput:
    return InvalidInput(f"No user {name}. List users with `noetl user list`.")


def _told(name: str, what: str, json: bool) -> None:
    if json:
        echo(to_json({"name": name, "status": what}))
    echo(f"{what} user {name}", err=True)


def _line(row: UserRow) -> str:
    roles = ", ".join(f"{one.role} in {one.namespace}" if one.namespace else one.role for one in row.grants)
    state = "disabled" if row.disabled else f"signed in {format_time(row.signed_in_at)}" if row.signed_in_at else ""
    groups = f"groups {', '.join(row.groups)}" if row.groups else ""
    return f"{row.name:<24} " + "  ".join(part for part in (roles or "no role", groups, state) if part)
