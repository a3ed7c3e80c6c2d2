"""`noetl audit`: list, verify and export the audit trail.

Tested in tests/acceptance/admin/test_audit_cli.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import format_time, to_json
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo, one_line
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.wire.answers import AuditLinks, AuditVerified
    from noetl.wiring.embedded import Team

_PAGE: Final = 500

command = command_group("List, verify and export the audit trail of a local store or of a server: who changed what.")


@command.command("list")
def list_entries(
    actor: Annotated[str | None, typer.Option("--actor", metavar="NAME", help="Only changes of this actor.")] = None,
    entity: Annotated[str | None, typer.Option("--entity", metavar="ID", help="Only changes of this object.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="Maximum number of entries.", min=1, max=500)] = 50,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """List entries, newest first, with their references."""

    async def job() -> None:
        from noetl.cli.runtime.target import connect, server_of

        server = server_of(store)
        found: Any
        if server is None:
            async with _open_trail(store) as team:
                found = await team.audited(actor=actor, entity=entity, limit=limit)
        else:
            async with connect(server) as client:
                found = await client.audit(actor=actor, entity=entity, limit=limit)
        for one in found:
            _print_entry(one, json)
        if not found:
            echo("no entries", err=True)

    call(job)


@command.command("verify")
def verify(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="Export to verify, as `noetl audit export` writes it.", show_default=False
        ),
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option("--expect", metavar="POSITION:HASH", help="Head of an earlier verification: it must be there."),
    ] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Recompute the hash chain. Exits with 1 if an entry was tampered with."""

    async def job() -> int:
        result = await _verify(store, file, expect)
        if json:
            echo(to_json(result))
        else:
            _print_result(result)
        return 0 if result.is_intact else 1

    raise typer.Exit(call(job))


@command.command("export")
def export(
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", metavar="FILE", help="New file to write. [default: standard output]", show_default=False
        ),
    ] = None,
    store: Place = None,
) -> None:
    """Write the chain as JSON lines, its head last."""

    async def job() -> None:
        if file is None:
            async for line in _lines(store):
                echo(line)
            return
        count = await _write(file, store)
        echo(f"wrote {count} entries to {file}; verify them with `noetl audit verify {file}`", err=True)

    call(job)


@asynccontextmanager
async def _open_trail(store: str | None) -> AsyncIterator[Team]:
    from noetl.cli.runtime.store import existing, local_settings
    from noetl.wiring.embedded import open_store, open_team

    opened = open_store(existing(local_settings(store)), to_read=True)
    try:
        yield open_team(opened)
    finally:
        await opened.close()


async def _verify(store: str | None, file: Path | None, expect: str | None) -> AuditVerified:
    from noetl.cli.runtime.target import connect, server_of
    from noetl.server.operations.audit import verify_lines, verify_trail

    if file is not None:
        try:
            with file.open("rb") as opened:
                return verify_lines(opened, expect)
        except OSError as error:
            raise InvalidInput(f"Cannot read {file}: {error.strerror}. Name an export of the audit trail.") from None
    server = server_of(store)
    if server is None:
        async with _open_trail(store) as team:
            return await verify_trail(team, expect)
    async with connect(server) as client:
        return await client.verify_audit(expect)


async def _pages(store: str | None) -> AsyncIterator[AuditLinks]:
    from noetl.cli.runtime.target import connect, server_of
    from noetl.server.operations.audit import link_row
    from noetl.wire.answers import AuditHead, AuditLinks

    server, after = server_of(store), 0
    if server is not None:
        async with connect(server) as client:
            while (page := await client.audit_chain(after, _PAGE)).entries:
                yield page
                after = page.entries[-1].position
        return
    async with _open_trail(store) as team:
        while rows := [link_row(one) for one in await team.chain(after, _PAGE)]:
            yield AuditLinks(entries=rows, head=AuditHead(position=0, hash=""))
            after = rows[-1].position


async def _lines(store: str | None) -> AsyncIterator[str]:
    from noetl.audit.chain import Head

    head = Head()
    async for page in _pages(store):
        for one in page.entries:
            yield to_json(one)
            head = Head(one.position, one.hash)
    yield to_json({"head": head})


async def _write(file: Path, store: str | None) -> int:
    from os import O_RDWR, O_TRUNC

    from noetl.private_files import open_private

    if file.exists():
        raise InvalidInput(f"{file} exists already. Name a new file for the export.")
    part, count = file.with_name(file.name + ".part"), -1  # the head is no entry
    try:
        with open(open_private(part, O_RDWR | O_TRUNC), "w", encoding="utf-8") as opened:
            async for line in _lines(store):
                opened.write(line + "\n")
                count += 1
        part.replace(file)
    except OSError as error:
        raise InvalidInput(f"Cannot write {file}: {error.strerror}. Name a new file.") from None
    finally:
        part.unlink(missing_ok=True)
    return count


def _print_entry(one: Any, json: bool) -> None:
    if json:
        echo(to_json(one))
        return
    change = f"{one.before or '-'} -> {one.after or '-'}" if one.before or one.after else ""
    strange = one.detail.get("unreadable")
    names = ", ".join(strange) if isinstance(strange, dict) else ""
    told = f"  unreadable: {names}; find the change with `noetl audit verify`" if names else ""
    line = f"{one.number:>6}  {_shown_time(one.at)}  {one.actor:<16} {one.action:<20} {one.entity}  {change}"
    echo(one_line(line.rstrip() + told))


def _shown_time(at: int) -> str:
    """Return the time of an entry; the number if none is so far away."""
    try:
        return format_time(at)
    except (ValueError, OverflowError, OSError):
        return str(at)


def _print_result(result: AuditVerified) -> None:
    head = f"{result.head.position}:{result.head.hash}"
    if result.broken is not None:
        which = "" if result.broken.number is None else f" (entry {result.broken.number})"
        echo(f"broken at place {result.broken.position}{which}: {result.broken.reason}. {result.broken.detail}")
        return
    echo(f"{result.entries} entries intact, head {head}")
    if result.pending:
        echo(f"{result.pending} entries are not linked yet: a running server does it within a second", err=True)
