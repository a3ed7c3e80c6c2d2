"""`noetl admin`: rebuild projections, collect garbage, prune old data.

Tested in tests/acceptance/admin/test_admin.py, test_dlq_cli.py and tests/unit/stores/postgres/test_admin.py.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, StorePath
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.store import existing, local_settings, with_store
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.server.background.result_gc import Gone
    from noetl.wiring.embedded import Store

_DAY_MS: Final = 86_400_000
_CAUSES: Final = {
    "expired": "`ttl` expired",
    "scope": "scope ended",
    "retention": "retention period over",
    "removed": "execution removed",
    "unlogged": "never reported",
}

command = command_group("Maintain a store: rebuild projections, collect garbage, prune old data.")


@command.command("rebuild")
def rebuild(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; print the differences and exit with 1 if there are any.")
    ] = False,
    store: StorePath = None,
) -> None:
    """Rebuild the projections from the event log.

    Stop servers and runs first: all work is queued again.
    """

    async def job(opened: Store) -> list[str]:
        from noetl.wiring.embedded import open_rebuild

        projections = open_rebuild(opened)
        if check:
            return await projections.check()
        typer.echo(f"rebuilt {await projections.rebuild()} executions from the event log")
        return []

    differences = call(lambda: with_store(store, job))
    for line in differences:
        typer.echo(line)
    if differences:
        typer.echo(f"noetl: {len(differences)} differences. Fix them with `noetl admin rebuild`.", err=True)
        raise typer.Exit(1)
    if check:
        typer.echo("all projections match the event log")


@command.command("gc")
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing; print what would be removed.")] = False,
    json: AsJson = False,
    store: StorePath = None,
) -> None:
    """Remove stored results that are no longer needed."""

    async def job(opened: Store) -> list[Gone]:
        from noetl.wiring.embedded import open_collector

        return await open_collector(existing(local_settings(store)), opened).collect(dry_run=dry_run)

    removed = call(lambda: with_store(store, job))
    if json:
        from noetl.cli.output.format import to_json

        rows = [{"ref": one.ref, "bytes": one.bytes, "cause": one.cause, "why": one.why} for one in removed]
        typer.echo(to_json({"dry_run": dry_run, "bytes": sum(one.bytes for one in removed), "results": rows}))
        return
    for cause, count in Counter(one.cause for one in removed).items():
        size = sum(one.bytes for one in removed if one.cause == cause)
        typer.echo(f"{_CAUSES[cause]}: {count} results, {size:,} bytes")
    typer.echo(f"{'would remove' if dry_run else 'removed'} {len(removed)} stored results")


@command.command("prune")
def prune(
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            metavar="DATE",
            help="Prune what ended before this day, such as 2026-01-01. "
            "[default: dead letters older than NOETL_DLQ_RETENTION_DAYS]",
        ),
    ] = None,
    archive: Annotated[
        Path | None,
        typer.Option("--archive", metavar="DIR", help="Write pruned logs to this folder first, as Parquet."),
    ] = None,
    store: StorePath = None,
) -> None:
    """Remove closed dead letters and, in PostgreSQL, old months.

    A month is removed when all its executions have ended. `noetl replay --archive` reads archived logs.
    """

    async def job() -> None:
        from noetl.wiring.embedded import database_admin, open_store

        day_ms = None if before is None else _parse_day(before)
        settings = local_settings(store)
        if settings.database and day_ms is not None:
            pruned = await database_admin(settings.database).prune(day_ms, archive)
            for line in pruned or ["no complete month before that day"]:
                typer.echo(line)
        opened = open_store(existing(settings))
        try:
            limit = int(time() * 1000) - settings.dlq_days * _DAY_MS if day_ms is None else day_ms
            count = await opened.prune_letters(limit)
        finally:
            await opened.close()
        if count or day_ms is None:
            typer.echo(f"closed dead letters removed: {count}")

    call(job)


def _parse_day(text: str) -> int:
    try:
        day = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"`--before {text}` is not a date. Write it as 2026-01-01.") from None
    return int(day.replace(tzinfo=day.tzinfo or UTC).timestamp() * 1000)
