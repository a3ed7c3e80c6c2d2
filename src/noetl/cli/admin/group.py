"""`noetl group`: create, list and delete groups of users.

Tested in tests/acceptance/admin/test_user_cli.py.
"""

from __future__ import annotations

from time import time
from typing import Annotated

import typer

from noetl.cli.admin.user import Namespaces, Role, entry, grants_of, open_local, plain
from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import to_json
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the group.")]

command = command_group("Create, list and delete groups of users of the local store or of a server.")


@command.command("set")
def set_group(
    name: Name, role: Role = None, namespace: Namespaces = None, json: AsJson = False, store: Place = None
) -> None:
    """Create a group, or replace its roles."""

    async def job() -> None:
        from noetl.cli.runtime.target import connect, server_of
        from noetl.ports.people import Group
        from noetl.server.auth.people.sessions import checked_name, grants_text

        server, grants = server_of(store), grants_of(role, namespace)
        if server is None:
            async with open_local(store) as people:
                group = Group(checked_name(name), grants, int(time() * 1000), "cli")
                await people.put_group(group, entry("group.put", name, "", grants_text(grants)))
        else:
            async with connect(server) as client:
                await client.put_group(name, plain(grants))
        _told(name, "set", json)

    call(job)


@command.command("list")
def list_groups(json: AsJson = False, store: Place = None) -> None:
    """List groups with their roles and members."""

    async def job() -> None:
        from noetl.cli.runtime.target import connect, server_of
        from noetl.server.operations.people import group_rows

        server = server_of(store)
        if server is None:
            async with open_local(store) as people:
                rows = await group_rows(people)
        else:
            async with connect(server) as client:
                rows = await client.groups()
        for row in rows:
            roles = ", ".join(f"{one.role} in {one.namespace}" if one.namespace else one.role for one in row.grants)
            line = f"{row.name:<24} {roles or 'no role'}  members: {', '.join(row.members) or 'none'}"
            echo(to_json(row) if json else line)
        if not rows:
            echo("no groups", err=True)

    call(job)


@command.command("delete")
def delete(name: Name, json: AsJson = False, store: Place = None) -> None:
    """Delete a group: its members leave it and lose its roles."""

    async def job() -> None:
        from noetl.cli.runtime.target import connect, server_of

        server = server_of(store)
        if server is None:
            async with open_local(store) as people:
                if not await people.remove_group(name, entry("group.delete", name)):
                    raise InvalidInput(f"No group {name}. List groups with `noetl group list`.")
        else:
            async with connect(server) as client:
                await client.delete_group(name)
        _told(name, "deleted", json)

    call(job)


def _told(name: str, what: str, json: bool) -> None:
    if json:
        echo(to_json({"name": name, "status": what}))
    echo(f"{what} group {name}", err=True)
