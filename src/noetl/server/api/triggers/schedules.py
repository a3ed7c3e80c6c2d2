"""Schedules, their next times and their firings.

Tested in tests/server/api/triggers/test_schedules.py.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from noetl.model.messages import Start
from noetl.ports.schedules import Firing, Schedule
from noetl.ports.team import Audit
from noetl.schedules.due import counted, start_at, upcoming
from noetl.schedules.spec import KINDS, ScheduleSpec
from noetl.schedules.times import latest, times_of
from noetl.server.api.triggers.verbs import TriggerNoun, TriggerStore, add_changes, add_reads, find_playbook, refusing
from noetl.server.background.schedules import local_time, payload_of
from noetl.server.http.endpoint import Call, Noun
from noetl.server.operations.schedules import MOST_BACKFILL, apply, backfill, paused, respecified, resumed, timed
from noetl.server.problems import Refusal
from noetl.server.services import Services
from noetl.wire.triggers.schedules import (
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
)

_SPEC = ScheduleSpec.__struct_fields__
_ASKED = tuple(name for name in _SPEC if name not in ("until", "at_once"))  # those belong to backfills
_EXAMPLE = {
    "name": "nightly", "path": "examples/hello", "cron": "30 2 * * *", "timezone": "Europe/Vienna", "overlap": "skip",
}  # fmt: skip


async def row_of(_: Call, schedule: Schedule) -> ScheduleRow:
    """Return a schedule as callers see it."""
    fields: dict[str, Any] = {name: getattr(schedule.spec, name) for name in _SPEC}
    fields |= {name: getattr(schedule, name) for name in ScheduleRow.__struct_fields__ if name not in _SPEC}
    return ScheduleRow(**{**fields, "payload": dict(schedule.spec.payload)})


async def _add(services: Services, made: Schedule, act: Audit) -> bool:
    return await services.schedules.add(made, act)


async def _remove(services: Services, schedule_id: str, act: Audit) -> bool:
    return await services.schedules.remove(schedule_id, act)


_STORE = TriggerStore[Schedule](
    lambda services, name: services.schedules.schedule(name),
    lambda call, query: call.services.schedules.schedules(
        path=query.path, after=query.cursor, limit=query.limit, within=call.reach
    ),
    _add,
    lambda services, name, is_paused, act: apply(
        services.schedules, name, (paused if is_paused else resumed)(services.clock.civil()), act
    ),
    _remove,
)
noun = Noun("schedules", "Schedules: when playbooks are started, and what became of each firing.")
SCHEDULES = TriggerNoun(
    noun,
    "schedule",
    "schedule",
    _STORE,
    row_of,
    ScheduleRow,
    of="path",
    if_taken="Change it with PATCH, or choose another name.",
)


@SCHEDULES.creates("operator", _EXAMPLE)
async def create(call: Call, body: ScheduleAsked) -> ScheduleRow:
    """Create a schedule of a registered playbook."""
    now, by = call.services.clock.civil(), call.actor.name
    spec = ScheduleSpec(**{name: getattr(body, name) for name in _ASKED})
    asked = Schedule(body.name, body.path, spec, body.version, paused=body.paused, created_at=now, created_by=by)
    made = await _checked(call, asked, now)
    if made.next_at is None:
        kind = next((one for one in KINDS if getattr(spec, one) is not None), "cron")
        fix = "Write a day that has not passed, or one of every year, such as 12-24."
        raise Refusal(422, "invalid-input", "The schedule has no time to come.", where=f"$.{kind}", fix=fix)
    return await SCHEDULES.add(call, made)


add_reads(SCHEDULES, ScheduleRows, "Return a schedule.")


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
    old = await SCHEDULES.find_own(call, schedule_id)
    if old.spec.at_once:
        raise Refusal(409, "conflict", "A backfill cannot be changed.", fix="Delete it, and make another one.")
    given = {name: value for name, value in asdict(body).items() if value is not msgspec.UNSET}
    version = given.pop("version", old.version)
    if any(kind in given for kind in KINDS):
        given = {**dict.fromkeys(KINDS), **given}
    spec, now = replace(old.spec, **given), call.services.clock.civil()
    await _checked(call, replace(old, spec=spec, version=version), now)
    made = await apply(call.services.schedules, schedule_id, respecified(spec, version, now), call.act(schedule_id))
    if made is None:
        raise SCHEDULES.missing(schedule_id)
    return await row_of(call, made)


add_changes(
    SCHEDULES,
    pauses="Pause a schedule: nothing fires until it is resumed.",
    resumes="Resume a schedule; what it missed meanwhile is recorded and not started.",
    removes="Delete a schedule and its firings; running executions continue.",
)


@noun.route("GET", "/api/schedules/{schedule_id}/next", "viewer", problems=(404, 422), of="path")
async def upcoming_runs(call: Call, schedule_id: str, query: NextQuery) -> NextRuns:
    """Compute the next times of a schedule."""
    schedule = await SCHEDULES.find(call, schedule_id)
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
    schedule = await SCHEDULES.find(call, schedule_id)
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
    old, now = await SCHEDULES.find(call, schedule_id), call.services.clock.civil()
    if old.spec.at_once:
        raise Refusal(409, "conflict", "This is a backfill.", fix="Backfill the schedule that it belongs to.")
    with refusing():
        made = backfill(old, body.since, body.until, body.at_once, call.actor.name, now)
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
    schedule = await SCHEDULES.find(call, schedule_id)
    tally = await call.services.schedules.tally(schedule_id)
    is_open = schedule.spec.at_once and schedule.next_at is not None
    left = counted(times_of(schedule.spec), schedule.next_at or 0, MOST_BACKFILL) if is_open else 0
    running = sum(tally.get(state, 0) for state in ("due", "queued", "started"))
    skipped = tally.get("skipped", 0) + tally.get("refused", 0)
    return Progress(schedule_id, running, tally.get("ended", 0), tally["failed"], skipped, left)


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
    with refusing():
        made = timed(schedule, now)
    playbook = await find_playbook(call, schedule.path, schedule.version)
    payload = payload_of(made, made.next_at or now)
    misfit = await call.services.control.misfit(Start("", schedule.path, playbook, payload), [payload])
    if misfit is not None:
        fix = "Send a payload that the playbook accepts."
        raise Refusal(422, "invalid-input", str(misfit[1]), where="$.payload", fix=fix)
    return made
