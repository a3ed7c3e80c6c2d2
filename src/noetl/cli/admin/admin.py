"""`noetl admin`: back up, restore, rebuild, collect garbage, prune, see exports.

Tested in tests/acceptance/admin/test_admin.py, test_restore.py, test_dlq_cli.py and tests/unit/stores/postgres/test_admin.py.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, StorePath, parse_duration
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.store import existing, local_settings, with_store
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.server.background.result_gc import Gone
    from noetl.settings import Settings
    from noetl.wiring.embedded import Store

_DAY_MS: Final = 86_400_000
_ENDED: Final = ("completed", "failed", "cancelled", "partial")
_CAUSES: Final = {
    "expired": "`ttl` expired",
    "scope": "scope ended",
    "retention": "retention period over",
    "removed": "execution removed",
    "unlogged": "never reported",
}

command = command_group("Maintain a store: back up, restore, rebuild projections, collect garbage, prune old data.")


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
        echo(f"rebuilt {await projections.rebuild()} executions from the event log")
        return []

    differences = call(lambda: with_store(store, job, to_read=check))
    for line in differences:
        echo(line)
    if differences:
        echo(f"noetl: {len(differences)} differences. Fix them with `noetl admin rebuild`.", err=True)
        raise typer.Exit(1)
    if check:
        echo("all projections match the event log")


@command.command("backup")
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New file for the backup.")], store: StorePath = None
) -> None:
    """Write a backup of a SQLite store, which may be in use."""

    async def job() -> None:
        from noetl.wiring.embedded import write_backup

        settings = existing(local_settings(store))
        if settings.database:
            raise InvalidInput("This store is a PostgreSQL database. Back it up with `pg_dump`.")
        await write_backup(settings, file)
        echo(f"wrote {file}; restore it with `noetl admin restore {file}`")

    call(job)


@command.command("restore")
def restore(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Backup to restore; without it, the store is in place.")
    ] = None,
    store: StorePath = None,
) -> None:
    """Restore a backup; what was in flight waits for a review.

    Stop servers and runs first. Restore a PostgreSQL database with `pg_restore`, then run this without a file before
    any server starts.
    """

    async def job() -> None:
        from noetl.wiring.embedded import restore_store

        settings = local_settings(store)
        if file is None:
            existing(settings)
        elif settings.database:
            raise InvalidInput("This store is a PostgreSQL database. Restore it with `pg_restore`, then omit FILE.")
        elif not file.is_file():
            raise InvalidInput(f"No backup at {file}.")
        elif settings.store.exists() and not settings.store.samefile(file):
            raise InvalidInput(f"{settings.store} exists. Move it away first, or name another store with --store PATH.")
        held = await restore_store(settings, file)
        for execution_id in held.executions:
            echo(f"{execution_id}  waits for a review: `noetl explain {execution_id}`")
        echo(f"held {len(held.executions)} executions and {held.messages} outbox messages for review")
        if held.schedules:
            echo(f"paused {held.schedules} schedules; resume each with `noetl schedule resume NAME` on a server")
        if held.subscriptions:
            fix = "resume each with `noetl subscription resume NAME` on a server"
            echo(f"paused {held.subscriptions} subscriptions; {fix}")

    call(job)


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
        echo(to_json({"dry_run": dry_run, "bytes": sum(one.bytes for one in removed), "results": rows}))
        return
    for cause, count in Counter(one.cause for one in removed).items():
        size = sum(one.bytes for one in removed if one.cause == cause)
        echo(f"{_CAUSES[cause]}: {count} results, {size:,} bytes")
    echo(f"{'would remove' if dry_run else 'removed'} {len(removed)} stored results")


@command.command("prune")
def prune(
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="TIME", help="Prune executions that ended longer ago, such as 30d or 12h."
        ),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            metavar="DATE",
            help="Prune executions that ended before this day, such as 2026-01-01; in PostgreSQL whole months.",
        ),
    ] = None,
    status: Annotated[
        list[str] | None,
        typer.Option("--status", help="Only this status: completed, failed, cancelled or partial; repeatable."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing; print what would be removed.")] = False,
    archive: Annotated[
        Path | None,
        typer.Option(
            "--archive", metavar="DIR", help="PostgreSQL: write pruned months to this folder first, as Parquet."
        ),
    ] = None,
    store: StorePath = None,
) -> None:
    """Remove ended executions and closed dead letters.

    Running executions stay. Without --older-than and --before, only dead letters that were closed more than
    NOETL_DLQ_RETENTION_DAYS ago are removed. `noetl replay --archive` reads archived logs.
    """

    async def job() -> None:
        settings = local_settings(store)
        by_month = bool(settings.database) and before is not None
        _check_prune(by_month, older_than, before, status, dry_run, archive)
        now = int(time() * 1000)
        limit = None if before is None else _parse_day(before)
        limit = limit if older_than is None else now - parse_duration("--older-than", older_than) * 1000
        if by_month and limit is not None:
            await _prune_months(settings, limit, archive)
        await _prune_rows(settings, now, limit, None if by_month else tuple(status or _ENDED), dry_run)

    call(job)


def _check_prune(
    by_month: bool,
    older_than: str | None,
    before: str | None,
    status: list[str] | None,
    dry_run: bool,
    archive: Path | None,
) -> None:
    if older_than is not None and before is not None:
        raise InvalidInput("--older-than and --before both set the age. Remove one of them.")
    if older_than is None and before is None and (status or dry_run):
        raise InvalidInput("--status and --dry-run choose among executions. Add --older-than TIME.")
    if by_month and (status or dry_run):
        raise InvalidInput("--before removes whole months of a PostgreSQL store. Use --older-than TIME instead.")
    if archive is not None and not by_month:
        raise InvalidInput("--archive writes whole months of a PostgreSQL store. Use it with --before DATE there.")
    for one in status or ():
        if one not in _ENDED:
            raise InvalidInput(f"`--status {one}` is no status of an ended execution: {', '.join(_ENDED)}.")


async def _prune_months(settings: Settings, limit: int, archive: Path | None) -> None:
    from noetl.wiring.embedded import database_admin

    for line in await database_admin(settings.database).prune(limit, archive) or ["no complete month before that day"]:
        echo(line)


async def _prune_rows(
    settings: Settings, now: int, limit: int | None, statuses: tuple[str, ...] | None, dry_run: bool
) -> None:
    """Remove executions, unless months were removed instead, then closed dead letters."""
    from noetl.wiring.embedded import open_store

    opened = open_store(existing(settings))
    try:
        if limit is not None and statuses is not None:
            await _prune_executions(settings, opened, now, limit, statuses, dry_run)
        if not dry_run:
            count = await opened.prune_letters(now - settings.dlq_days * _DAY_MS if limit is None else limit)
            if count or limit is None:
                echo(f"closed dead letters removed: {count}")
    finally:
        await opened.close()


async def _prune_executions(
    settings: Settings, opened: Store, now: int, limit: int, statuses: tuple[str, ...], dry_run: bool
) -> None:
    from noetl.cli.output.format import format_time
    from noetl.cli.runtime.environment import actor
    from noetl.server.operations.retention import delete_executions, ended_before
    from noetl.wiring.embedded import open_collector

    rows = await ended_before(opened, limit, statuses)
    if dry_run:
        for row in rows:
            echo(f"{row['execution_id']}  {row['status']:<10} {format_time(row['ended_at'])}  {row['path']}")
        echo(f"would remove {len(rows)} executions")
        return
    removed = await delete_executions(opened, [str(row["execution_id"]) for row in rows], now, actor())
    results = await open_collector(settings, opened).collect()
    echo(f"removed {len(removed)} executions and {len(results)} stored results")


def _parse_day(text: str) -> int:
    try:
        day = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"`--before {text}` is not a date. Write it as 2026-01-01.") from None
    return int(day.replace(tzinfo=day.tzinfo or UTC).timestamp() * 1000)


@command.command("export")
def export(
    reset: Annotated[
        str | None,
        typer.Option(
            "--reset",
            metavar="TARGET",
            help="Export the whole log to this target again: clickhouse, parquet, otlp or openlineage.",
        ),
    ] = None,
    json: AsJson = False,
    store: StorePath = None,
) -> None:
    """Show how far the event log is exported, or begin again.

    Servers export; the settings NOETL_EXPORT_... name the targets. Of each target, this prints how many events
    are not there yet.
    """

    async def job(opened: Store) -> list[dict[str, Any]]:
        from noetl.observe.export.targets import TARGETS, export_targets
        from noetl.server.background.log_export import behind, restart
        from noetl.wiring.triggers import open_triggers

        positions, on = open_triggers(opened), {one.name for one in export_targets(local_settings(store).export)}
        if reset is not None:
            if reset not in TARGETS:
                raise InvalidInput(f"There is no export target `{reset}`. Targets: {', '.join(TARGETS)}.")
            if not await restart(reset, positions):
                raise InvalidInput(f"The export to {reset} moved on meanwhile. Try again.")
        return [{"target": one, "is_on": one in on, "behind": await behind(one, opened, positions)} for one in TARGETS]

    found = call(lambda: with_store(store, job))
    if json:
        from noetl.cli.output.format import to_json

        echo(to_json(found))
        return
    for one in found:
        echo(f"{one['target']:<12} {one['behind']:>12,} events behind" if one["is_on"] else f"{one['target']:<12} off")
