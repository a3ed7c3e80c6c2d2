"""Schedules, their next times and their firings.

Tested in tests/server/api/test_schedules.py.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NoReturn

import msgspec
from msgspec.structs import asdict, replace

from noetl.model.messages import Start
from noetl.ports.schedules import Firing, Schedule
from noetl.schedules.due import counted, start_at, upcoming
from noetl.schedules.spec import KINDS, Problem, ScheduleSpec
from noetl.schedules.times import latest, times_of
from noetl.server.background.schedules import local_time, payload_of
from noetl.server.cache.catalog_lookup import similar_path
from noetl.server.http.endpoint import Call, Noun
from noetl.server.operations.schedules import (
    MOST_BACKFILL,
    Change,
    apply,
    backfill,
    paused,
    respecified,
    resumed,
    timed,
)
from noetl.server.problems import Refusal, not_found
from noetl.wire.answers import Removed
from noetl.wire.schedules import (
    BackfillAsked,
    BackfillMade,
    FiringRow,
    FiringRows,
    FiringsQuery,
    NextQuery,
    NextRun,
    NextRuns,
    Progress,
    ScheduleAsked,
    SchedulePatch,
    ScheduleRow,
    ScheduleRows,
    SchedulesQuery,
)

_SPEC = ScheduleSpec.__struct_fields__
_ASKED = tuple(name for name in _SPEC if name not in ("until", "at_once"))  # those belong to backfills
_EXAMPLE = {
    "name": "nightly", "path": "examples/hello", "cron": "30 2 * * *", "timezone": "Europe/Vienna", "overlap": "skip",
}  # fmt: skip
noun = Noun("schedules", "Schedules: when playbooks are started, and what became of each firing.")


@noun.route(
    "POST",
    "/api/schedules",
    "operator",
    status=201,
    act="schedule.create",
    example=_EXAMPLE,
    problems=(404, 409, 422),
    of="path",
)
async def create(call: Call, body: ScheduleAsked) -> ScheduleRow:
    """Create a schedule of a registered playbook."""
    now, by = call.services.clock.civil(), call.actor.name
    spec = ScheduleSpec(**{name: getattr(body, name) for name in _ASKED})
    made = Schedule(body.name, body.path, spec, body.version, paused=body.paused, created_at=now, created_by=by)
    schedule = await _checked(call, made, now)
    if not await call.services.schedules.add(schedule, call.act(body.name, path=body.path)):
        raise Refusal(
            409,
            "conflict",
            f"There is a schedule `{body.name}`.",
            where="$.name",
            fix="Change it with PATCH, or choose another name.",
        )
    return row_of(schedule)


@noun.route("GET", "/api/schedules", "viewer", problems=(422,), of="path")
async def listed(call: Call, query: SchedulesQuery) -> ScheduleRows:
    """List schedules by id."""
    found = await call.services.schedules.schedules(
        path=query.path, after=query.cursor, limit=query.limit, within=call.reach
    )
    rows = [row_of(schedule) for schedule in found]
    return ScheduleRows(schedules=rows, next=rows[-1].schedule_id if len(rows) == query.limit else None)


@noun.route("GET", "/api/schedules/{schedule_id}", "viewer", problems=(404,), of="path")
async def shown(call: Call, schedule_id: str) -> ScheduleRow:
    """Return a schedule."""
    return row_of(await _found(call, schedule_id))


@noun.route(
    "PATCH",
    "/api/schedules/{schedule_id}",
    "operator",
    act="schedule.change",
    example={"cron": "0 3 * * *"},
    problems=(404, 409, 422),
    of="path",
)
async def change(call: Call, schedule_id: str, body: SchedulePatch) -> ScheduleRow:
    """Change fields of a schedule; its next time is computed anew."""
    old = await _own(call, schedule_id)
    if old.spec.at_once:
        raise Refusal(409, "conflict", "A backfill cannot be changed.", fix="Delete it, and make another one.")
    given = {name: value for name, value in asdict(body).items() if value is not msgspec.UNSET}
    version = given.pop("version", old.version)
    if any(kind in given for kind in KINDS):
        given = {**dict.fromkeys(KINDS), **given}
    spec, now = replace(old.spec, **given), call.services.clock.civil()
    await _checked(call, replace(old, spec=spec, version=version), now)
    return await _apply(call, schedule_id, respecified(spec, version, now))


@noun.route("POST", "/api/schedules/{schedule_id}/pause", "operator", act="schedule.pause", problems=(404,), of="path")
async def pause(call: Call, schedule_id: str) -> ScheduleRow:
    """Pause a schedule: nothing fires until it is resumed."""
    return await _apply(call, schedule_id, paused(call.services.clock.civil()))


@noun.route(
    "POST", "/api/schedules/{schedule_id}/resume", "operator", act="schedule.resume", problems=(404,), of="path"
)
async def resume(call: Call, schedule_id: str) -> ScheduleRow:
    """Resume a schedule; what it missed meanwhile is recorded and not started."""
    return await _apply(call, schedule_id, resumed(call.services.clock.civil()))


@noun.route("DELETE", "/api/schedules/{schedule_id}", "operator", act="schedule.delete", problems=(404, 409), of="path")
async def remove(call: Call, schedule_id: str) -> Removed:
    """Delete a schedule and its firings; running executions continue."""
    await _own(call, schedule_id)
    if not await call.services.schedules.remove(schedule_id, call.act(schedule_id)):
        _missing(schedule_id)
    return Removed(removed=1)


@noun.route("GET", "/api/schedules/{schedule_id}/next", "viewer", problems=(404, 422), of="path")
async def upcoming_runs(call: Call, schedule_id: str, query: NextQuery) -> NextRuns:
    """Compute the next times of a schedule."""
    schedule = await _found(call, schedule_id)
    after = call.services.clock.civil() if query.after is None else query.after
    times = islice(upcoming(times_of(schedule.spec), after), query.count)
    runs = [
        NextRun(at=at, start_at=start_at(schedule.spec, schedule_id, at), local=local_time(schedule, at))
        for at in times
    ]
    return NextRuns(schedule_id=schedule_id, timezone=schedule.spec.timezone, paused=schedule.paused, runs=runs)


@noun.route("GET", "/api/schedules/{schedule_id}/firings", "viewer", problems=(404, 422), of="path")
async def history(call: Call, schedule_id: str, query: FiringsQuery) -> FiringRows:
    """List the firings of a schedule, the newest first, and why some started nothing."""
    schedule = await _found(call, schedule_id)
    found = await call.services.schedules.firings(schedule_id, query.before, query.limit)
    rows = [_firing(schedule, firing) for firing in found]
    return FiringRows(firings=rows, next=rows[-1].at if len(rows) == query.limit else None)


@noun.route(
    "POST",
    "/api/schedules/{schedule_id}/backfill",
    "operator",
    status=201,
    act="schedule.backfill",
    example={"since": 1_767_225_600_000, "until": 1_769_904_000_000, "at_once": 4},
    problems=(404, 409, 422),
    of="path",
)
async def start_backfill(call: Call, schedule_id: str, body: BackfillAsked) -> BackfillMade:
    """Start the executions of past times; each once, also if a server stops meanwhile."""
    old, now = await _found(call, schedule_id), call.services.clock.civil()
    if old.spec.at_once:
        raise Refusal(409, "conflict", "This is a backfill.", fix="Backfill the schedule that it belongs to.")
    try:
        made = backfill(old, body.since, body.until, body.at_once, call.actor.name, now)
    except Problem as problem:
        raise Refusal(422, "invalid-input", problem.what, where=f"$.{problem.field}", fix=problem.fix) from None
    times, first = times_of(made.spec), made.next_at or 0
    last = latest(times, first, body.until)
    count = counted(times, first, MOST_BACKFILL)
    answer = BackfillMade(made.schedule_id, count, first, last or first, body.dry_run)
    if body.dry_run:
        call.skip_audit()
    elif not await call.services.schedules.add(made, call.act(made.schedule_id, path=made.path, count=count)):
        fix = f"GET /api/schedules/{made.schedule_id}/progress shows it; delete it to repeat it."
        raise Refusal(409, "conflict", f"There is a backfill `{made.schedule_id}`.", fix=fix)
    return answer


@noun.route("GET", "/api/schedules/{schedule_id}/progress", "viewer", problems=(404,), of="path")
async def progress(call: Call, schedule_id: str) -> Progress:
    """Count the firings of a schedule by what became of them."""
    schedule = await _found(call, schedule_id)
    tally = await call.services.schedules.tally(schedule_id)
    is_open = schedule.spec.at_once and schedule.next_at is not None
    left = counted(times_of(schedule.spec), schedule.next_at or 0, MOST_BACKFILL) if is_open else 0
    running = sum(tally.get(state, 0) for state in ("due", "queued", "started"))
    skipped = tally.get("skipped", 0) + tally.get("refused", 0)
    return Progress(schedule_id, running, tally.get("ended", 0), tally["failed"], skipped, left)


def row_of(schedule: Schedule) -> ScheduleRow:
    """Return a schedule as callers see it."""
    fields: dict[str, Any] = {name: getattr(schedule.spec, name) for name in _SPEC}
    fields |= {name: getattr(schedule, name) for name in ScheduleRow.__struct_fields__ if name not in _SPEC}
    return ScheduleRow(**{**fields, "payload": dict(schedule.spec.payload)})


def _firing(schedule: Schedule, firing: Firing) -> FiringRow:
    fields = {name: getattr(firing, name) for name in ("at", "state", "reason", "detail", "count", "is_more")}
    return FiringRow(
        **fields,
        local=local_time(schedule, firing.at),
        execution_id=firing.execution_id if firing.state in ("started", "ended") else "",
        last_at=firing.last_at or None,
        decided_at=firing.decided_at or None,
    )


async def _checked(call: Call, schedule: Schedule, now: int) -> Schedule:
    """Return a schedule with its next time, if times, playbook and payload are valid."""
    try:
        made = timed(schedule, now)
    except Problem as problem:
        raise Refusal(422, "invalid-input", problem.what, where=f"$.{problem.field}", fix=problem.fix) from None
    is_seen = call.sees(schedule.path)
    playbook = await call.services.lookups.content_hash(schedule.path, schedule.version) if is_seen else None
    if playbook is None:
        which = f"version {schedule.version} of `{schedule.path}`" if schedule.version else f"`{schedule.path}`"
        near = await similar_path(call.services.store, schedule.path, call.reach)
        raise not_found(f"The catalog has no {which}.{near}", "Register it with POST /api/catalog first.")
    payload = payload_of(made, made.next_at or now)
    misfit = await call.services.control.misfit(Start("", schedule.path, playbook, payload), [payload])
    if misfit is not None:
        fix = "Send a payload that the playbook accepts."
        raise Refusal(422, "invalid-input", str(misfit[1]), where="$.payload", fix=fix)
    return made


async def _apply(call: Call, schedule_id: str, made: Change) -> ScheduleRow:
    await _found(call, schedule_id)
    found = await apply(call.services.schedules, schedule_id, made, call.act(schedule_id))
    return row_of(found) if found is not None else _missing(schedule_id)


async def _found(call: Call, schedule_id: str) -> Schedule:
    found = await call.services.schedules.schedule(schedule_id)
    return found if found is not None and call.sees(found.path) else _missing(schedule_id)


async def _own(call: Call, schedule_id: str) -> Schedule:
    """Return a schedule that was made by API. Raises Refusal."""
    found = await _found(call, schedule_id)
    if found.owner:
        raise Refusal(
            409,
            "conflict",
            f"`triggers` of the playbook `{found.owner}` define this schedule.",
            fix="Register a version of the playbook with other triggers, or pause the schedule.",
        )
    return found


def _missing(schedule_id: str) -> NoReturn:
    raise not_found(f"No schedule {schedule_id}.", "GET /api/schedules lists the schedules.")
