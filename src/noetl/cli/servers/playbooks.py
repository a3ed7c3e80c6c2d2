"""`noetl playbooks`: list, show and delete the playbooks of a catalog.

Of a server, or of the local store, where `noetl run` registers what it runs. Tested in
tests/acceptance/servers/test_playbooks_cli.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.completers import complete_playbook
from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import format_time, to_json
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.store import with_store
from noetl.cli.runtime.target import connect, server_of
from noetl.cli.runtime.terminal import echo, echo_document
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.wiring.embedded import Store

Path = Annotated[
    str, typer.Argument(metavar="PATH", help="Path of the playbook in the catalog.", autocompletion=complete_playbook)
]

command = command_group("List, show and delete the playbooks of a catalog.")


@command.command("list")
def list_playbooks(
    search: Annotated[
        str | None, typer.Option("--search", metavar="TEXT", help="Only paths that contain this text.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="Maximum number of playbooks.")] = 100,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """List playbooks by path, each with its latest version."""

    async def job() -> list[Mapping[str, Any]]:
        server = server_of(store)
        if server is None:
            return await with_store(store, lambda opened: opened.entries(search, None, limit), to_read=True)
        from msgspec import to_builtins

        async with connect(server) as client:
            return [to_builtins(one) for one in (await client.playbooks(search, limit=limit)).playbooks]

    rows = call(job)
    for row in rows:
        line = f"{row['path']}  version {row['version']} of {row['versions']}  {format_time(row['registered_at'])}"
        echo(to_json(row) if json else line)
    if not rows and not json:
        echo("no playbooks")


@command.command("show")
def show(
    path: Path,
    version: Annotated[int | None, typer.Option("--version", min=1, help="Version. [default: the latest]")] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Print the text of a playbook."""

    async def job() -> Mapping[str, Any]:
        server = server_of(store)
        if server is None:
            return await with_store(store, lambda opened: _find(opened, path, version), to_read=True)
        from msgspec import to_builtins

        async with connect(server) as client:
            found: Mapping[str, Any] = to_builtins(await client.playbook(path, version))
            return found

    row = call(job)
    echo_document(to_json(row) if json else row["content"], nl=json or not row["content"].endswith("\n"))


@command.command("delete")
def delete(
    path: Path,
    version: Annotated[int | None, typer.Option("--version", min=1, help="Version. [default: all versions]")] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Delete one version of a playbook, or all its versions."""

    async def job() -> int:
        server = server_of(store)
        if server is None:
            return await with_store(store, lambda opened: _unregister(opened, path, version))
        async with connect(server) as client:
            return (await client.unregister(path, version)).removed

    removed = call(job)
    if json:
        echo(to_json({"path": path, "version": version, "removed": removed}))
    echo(f"deleted {removed} version{'' if removed == 1 else 's'} of {path}", err=True)


async def _find(opened: Store, path: str, version: int | None) -> Mapping[str, Any]:
    row = await opened.find(path, version)
    if row is None:
        raise _missing(path, version)
    return {**row, "content": bytes(row["content"]).decode("utf-8", "replace")}


async def _unregister(opened: Store, path: str, version: int | None) -> int:
    from noetl.cli.runtime.environment import actor
    from noetl.ports import AuditEntry

    entry = AuditEntry(opened.clock.now(), actor(), "playbook.delete", path, {"version": version})
    removed = await opened.unregister(path, version, entry)
    if not removed:
        raise _missing(path, version)
    return removed


def _missing(path: str, version: int | None) -> InvalidInput:
    which = f"`{path}`" if version is None else f"version {version} of `{path}`"
    return InvalidInput(f"The catalog has no {which}. List playbooks with `noetl playbooks list`.")
