"""`noetl schedule`: create, list, show, pause, resume and delete schedules.

Tested in tests/acceptance/triggers/test_schedule_cli.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Payload, Place, SetValue
from noetl.cli.output.format import to_json
from noetl.cli.runtime.terminal import echo
from noetl.cli.triggers.actions import PAGE, Paused, TriggerNoun, add_changes, add_list, maker
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.triggers.schedules import FiringRow, Progress, ScheduleRow

_SHOWN: Final = 5
Cron = Annotated[
    str | None, typer.Option("--cron", metavar="EXPRESSION", help='Cron expression, such as "30 2 * * *".')
]
Every = Annotated[str | None, typer.Option("--every", metavar="TIME", help="Interval, such as 15m or 6h.")]
Dates = Annotated[
    list[str] | None,
    typer.Option("--date", metavar="DATE", help="Day, as 2026-12-24 or 12-24 for every year; repeatable."),
]
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="HH:MM", help="Time of day with --date; repeatable. [default: 00:00]"),
]
Timezone = Annotated[
    str, typer.Option("--timezone", "--tz", metavar="ZONE", help="IANA time zone, such as Europe/Vienna.")
]
Jitter = Annotated[str, typer.Option("--jitter", metavar="TIME", help="Spread starts over this time, such as 30s.")]
CatchUp = Annotated[str, typer.Option("--catch-up", metavar="MODE", help="Start late firings: skip, last or all.")]
Overlap = Annotated[
    str, typer.Option("--overlap", metavar="MODE", help="While one runs: allow, skip, queue or cancel_running.")
]
TimeAs = Annotated[str, typer.Option("--time-as", metavar="KEY", help="Workload key that gets the time of the firing.")]
Version = Annotated[
    int | None, typer.Option("--version", help="Version of the playbook. [default: the latest at each firing]")
]


async def _page(client: Client, path: str | None, cursor: str | None) -> tuple[list[ScheduleRow], str | None]:
    page = await client.schedules(path, cursor=cursor, limit=PAGE)
    return page.schedules, page.next


def _times(row: ScheduleRow) -> str:
    if row.calendar is not None:
        return f"{', '.join(row.calendar.dates)} at {', '.join(row.calendar.at)}"
    return row.cron if row.cron is not None else f"every {row.every}"


def _next(row: ScheduleRow) -> str:
    if row.paused:
        return "paused"
    return "never" if row.next_at is None else _local(row.next_at, row.timezone)


def _local(at: int, zone: str) -> str:
    """Return a time in the zone of a schedule, or in UTC, with the name."""
    from datetime import UTC, datetime
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return f"{datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).isoformat()} {zone}"
    except ZoneInfoNotFoundError:
        return f"{datetime.fromtimestamp(at / 1000, UTC).isoformat()} UTC"


NOUN: TriggerNoun[ScheduleRow] = TriggerNoun(
    "schedule",
    "Schedules fire on a server",
    _page,
    find=lambda client, id: client.schedule(id),
    pause=lambda client, id: client.pause_schedule(id),
    resume=lambda client, id: client.resume_schedule(id),
    delete=lambda client, id: client.delete_schedule(id),
    line=lambda row: f"{row.schedule_id:<28} {_times(row):<28} {_next(row):<40} {row.path}",
    changed=lambda row: f"{row.schedule_id}, next: {_next(row)}",
)
Id = Annotated[str, NOUN.id]
command = command_group("Create, list, show, pause, resume and delete a server's schedules, which start executions.")


@command.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule, which is its ID.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Playbook in the server's catalog.")],
    cron: Cron = None,
    every: Every = None,
    dates: Dates = None,
    at: At = None,
    timezone: Timezone = "UTC",
    jitter: Jitter = "0",
    catch_up: CatchUp = "skip",
    overlap: Overlap = "skip",
    time_as: TimeAs = "",
    version: Version = None,
    paused: Paused = False,
    set: SetValue = None,
    payload: Payload = None,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Create a schedule: with --cron, --every or --date."""

    async def job(client: Client) -> None:
        from noetl.cli.arguments.payload import read_payload

        if at and not dates:
            raise InvalidInput("`--at` needs --date. For a time of every day, write --cron.")
        times = {"cron": cron, "every": every, "calendar": {"dates": dates, "at": at or ["00:00"]} if dates else None}
        made = await client.create_schedule(
            name, path, **times, timezone=timezone, jitter=jitter, catch_up=catch_up, overlap=overlap, time_as=time_as,
            version=version, paused=paused, payload=read_payload(set or (), payload),
        )  # fmt: skip
        NOUN.print_changed(made, "created", json)

    NOUN.on_server(server, job)


add_list(command, NOUN, "List schedules: ID, times, next time and playbook.")


@command.command("show")
def show(
    id: Id,
    limit: Annotated[int, typer.Option("--limit", help="Number of firings to show.", min=1, max=1_000)] = 10,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Show a schedule, its next times and its last firings."""

    async def job(client: Client) -> None:
        row, runs = await client.schedule(id), await client.next_runs(id, _SHOWN)
        firings = await client.firings(id, limit=limit)
        if json:
            echo(to_json({"schedule": row, "next": runs.runs, "firings": firings.firings}))
            return
        echo(f"{row.schedule_id}: {_times(row)} ({row.timezone}) starts {row.path}")
        echo(f"  overlap {row.overlap}, catch_up {row.catch_up}, jitter {row.jitter}, made by {maker(row)}")
        echo(f"  next: {', '.join(run.local for run in runs.runs) or 'never'}{' (paused)' if row.paused else ''}")
        for firing in firings.firings:
            echo(f"  {_firing(firing)}")

    NOUN.on_server(server, job)


@command.command("next")
def upcoming(
    id: Id,
    count: Annotated[int, typer.Option("--count", help="Number of times.", min=1, max=100)] = 10,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Print the next times of a schedule, in its time zone."""

    async def job(client: Client) -> None:
        found = await client.next_runs(id, count)
        for run in found.runs:
            echo(to_json(run) if json else run.local)
        if found.paused:
            echo(f"schedule {id} is paused: resume it with `noetl schedule resume {id}`", err=True)
        elif not found.runs:
            echo(f"schedule {id} never fires again", err=True)

    NOUN.on_server(server, job)


@command.command("backfill")
def backfill(
    id: Id,
    since: Annotated[str, typer.Option("--from", metavar="TIME", help="First day or time, in the schedule's zone.")],
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="Day or time after the last one.")],
    at_once: Annotated[int, typer.Option("--at-once", min=1, max=100, help="Executions that run at once.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the times.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Show the progress until the end.")] = False,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Start the executions of past times, each once."""

    async def job(client: Client) -> None:
        zone = (await client.schedule(id)).timezone
        first, end = _moment(since, zone, "--from"), _moment(until, zone, "--to")
        if end <= first:
            raise InvalidInput(f"`--to` is {until}, which is not after `--from`, {since}. Write a later end.")
        try:
            made = await client.backfill(id, first, end, at_once=at_once, dry_run=dry_run)
        except InvalidInput as error:  # the options have other names in the API
            raise InvalidInput(str(error).replace("($.until)", "(--from, --to)")) from None
        if json:
            echo(to_json(made))
        what = "would start" if dry_run else "starts"
        span = f"{_local(made.first, zone)} to {_local(made.last, zone)}"
        echo(f"backfill {made.schedule_id} {what} {made.count} executions, {span}", err=True)
        if follow and not dry_run:
            await _wait_for(client, made.schedule_id)
        elif not dry_run:
            echo(f"follow it with `noetl schedule progress {made.schedule_id}`", err=True)

    NOUN.on_server(server, job)


@command.command("progress")
def show_progress(
    id: Id,
    follow: Annotated[bool, typer.Option("--follow", help="Show the progress until the end.")] = False,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Show how many firings have run, run and are left."""

    async def job(client: Client) -> None:
        if follow:
            await _wait_for(client, id)
        found = await client.progress(id)
        echo(to_json(found) if json else _progress(found))

    NOUN.on_server(server, job)


async def _wait_for(client: Client, schedule_id: str) -> None:
    from asyncio import sleep

    shown = ""
    while True:
        found = await client.progress(schedule_id)
        if (line := _progress(found)) != shown:
            shown = line
            echo(line, err=True)
        if not found.left and not found.running:
            return
        await sleep(1.0)


def _progress(row: Progress) -> str:
    failed = f" ({row.failed} not completed)" if row.failed else ""
    skipped = f", {row.skipped} started nothing" if row.skipped else ""
    return f"{row.schedule_id}: {row.ended} ended{failed}, {row.running} running, {row.left} left{skipped}"


def _moment(text: str, zone: str, option: str) -> int:
    """Return a day or time as milliseconds since the epoch."""
    from datetime import datetime

    from noetl.schedules.times import zone_of

    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        fix = "Write a day such as 2026-01-31, or a time such as 2026-01-31T08:00."
        raise InvalidInput(f"`{option}` is {text!r}, which is no day or time. {fix}") from None
    moment = round((found if found.tzinfo else found.replace(tzinfo=zone_of(zone))).timestamp() * 1000)
    if moment < 0:
        raise InvalidInput(f"`{option}` is {text}, which is before 1970. Write a later day or time.")
    return moment


add_changes(
    command,
    NOUN,
    pause="Pause a schedule: nothing fires until it is resumed.",
    resume="Resume a paused schedule; what it missed is not started.",
    delete="Delete a schedule and its firings.",
)


def _firing(row: FiringRow) -> str:
    several = "" if row.count == 1 else f" and {row.count - 1}{' or' if row.is_more else ''} more"
    why = f"{row.reason}: {row.detail}" if row.reason else row.execution_id
    return f"{row.local}{several}  {row.state:<8} {why}".rstrip()
