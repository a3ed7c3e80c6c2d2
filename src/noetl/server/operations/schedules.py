"""Create, change, pause and resume schedules; follow the triggers of a playbook.

Every change computes the next time anew and records the times that it passes over, so that none disappears without a reason.
Tested in tests/server/api/triggers/test_schedules.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import ValidationError, convert
from msgspec.structs import replace

from noetl.model.errors import Conflict, InvalidInput
from noetl.ports import AuditEntry
from noetl.ports.schedules import Firing, Schedule, Schedules
from noetl.ports.team import Audit
from noetl.schedules.due import between, counted, start_at
from noetl.schedules.spec import Problem, ScheduleSpec
from noetl.schedules.times import times_of
from noetl.server.background.schedules import missed_firing

MOST_BACKFILL: Final = 10_000  # times of one backfill
_TRIES: Final = 20
_MOST: Final = 10_000  # schedules of one playbook
Change = Callable[[Schedule], tuple[Schedule, list[Firing]]]


def timed(schedule: Schedule, now: int) -> Schedule:
    """Return a schedule with its next time after now. Raises InvalidInput."""
    at = times_of(schedule.spec).after(now)
    start = None if at is None else start_at(schedule.spec, schedule.schedule_id, at)
    return replace(schedule, next_at=at, start_at=start, changed_at=now)


def respecified(spec: ScheduleSpec, version: int | None, now: int) -> Change:
    """Return the change to another specification; a paused schedule stays paused."""

    def change(old: Schedule) -> tuple[Schedule, list[Firing]]:
        passed = [] if old.paused else _passed(old, "changed", now)
        return timed(replace(old, spec=spec, version=version), now), passed

    return change


def paused(now: int) -> Change:
    """Return the change that pauses a schedule."""
    return lambda old: (replace(old, paused=True, changed_at=now), [])


def resumed(now: int) -> Change:
    """Return the change that resumes a schedule with its next time after now.

    A backfill goes on where it was.
    """

    def change(old: Schedule) -> tuple[Schedule, list[Firing]]:
        if old.spec.at_once:
            return replace(old, paused=False, changed_at=now), []
        return timed(replace(old, paused=False), now), _passed(old, "paused", now) if old.paused else []

    return change


def backfill(old: Schedule, since: int, until: int, at_once: int, by: str, now: int) -> Schedule:
    """Return the backfill of a schedule: its times from `since` to before `until`.

    It is a schedule of its own whose times are all in the past, so each is started once, whatever happens meanwhile; the
    same range has the same id. Raises Problem.
    """
    spec = replace(old.spec, catch_up="all", overlap="allow", jitter=0, until=until, at_once=at_once)
    first = times_of(spec).after(since - 1)
    if first is None:
        raise Problem("until", "The schedule has no time in this range.", "Choose an earlier start or a later end.")
    if until > now:
        raise Problem("until", "The end of a backfill is in the future.", "Choose one that has passed.")
    if counted(times_of(spec), first, MOST_BACKFILL + 1) > MOST_BACKFILL:
        raise Problem("until", f"The range has more than {MOST_BACKFILL:,} times.", "Split it into several ranges.")
    name = f"{old.schedule_id}.backfill-{since}-{until}"
    return Schedule(name, old.path, spec, old.version, "", False, first, first, now, by, now)


def _passed(old: Schedule, reason: str, now: int) -> list[Firing]:
    missed = None if old.next_at is None else between(times_of(old.spec), old.next_at, now)
    return [] if missed is None else [missed_firing(old, missed, reason, now)]


async def follow_playbook(
    schedules: Schedules, path: str, triggers: Sequence[Mapping[str, Any]], by: str, now: int
) -> None:
    """Make the schedules of a playbook those of its `triggers`; others stay."""
    wanted = wanted_schedules(path, triggers)
    for old in await schedules.schedules(owner=path, limit=_MOST):
        if old.schedule_id not in wanted:
            await schedules.remove(old.schedule_id, AuditEntry(now, by, "schedule.delete", old.schedule_id))
    for name, spec in wanted.items():
        old_one = await schedules.schedule(name)
        if old_one is None:
            made = Schedule(name, path, spec, owner=path, created_at=now, created_by=by)
            await schedules.add(timed(made, now), AuditEntry(now, by, "schedule.create", name))
        elif old_one.spec != spec:
            await apply(schedules, name, respecified(spec, None, now), AuditEntry(now, by, "schedule.change", name))


def wanted_schedules(path: str, triggers: Sequence[Mapping[str, Any]]) -> dict[str, ScheduleSpec]:
    """Return the schedules of a playbook by id, each with times. Raises InvalidInput."""
    prefix = trigger_prefix(path)
    wanted = {f"{prefix}:{one['schedule']}": _spec(one) for one in triggers if "schedule" in one}
    for spec in wanted.values():
        times_of(spec)
    return wanted


def trigger_prefix(path: str) -> str:
    """Return the first part of the ids of a playbook's triggers.

    No other path has the same prefix, and no name given over the API has a colon.
    """
    return path.replace("%", "%25").replace(":", "%3A").replace("/", ":")


def _spec(trigger: Mapping[str, Any]) -> ScheduleSpec:
    try:
        return convert({key: value for key, value in trigger.items() if key != "schedule"}, ScheduleSpec)
    except ValidationError as error:
        what = f"The schedule `{trigger['schedule']}` cannot be read: {error}. Write a value of the right type."
        raise InvalidInput(what) from None


async def pause_all(schedules: Schedules, now: int) -> int:
    """Pause every schedule; return how many were not paused."""
    count, after = 0, None
    while page := await schedules.schedules(after=after):
        after = page[-1].schedule_id
        for one in page:
            if not one.paused:
                await apply(schedules, one.schedule_id, paused(now))
                count += 1
    return count


async def apply(schedules: Schedules, schedule_id: str, change: Change, act: Audit = None) -> Schedule | None:
    """Change a schedule, also while it fires; None if it is unknown. Raises Conflict."""
    for _ in range(_TRIES):
        old = await schedules.schedule(schedule_id)
        if old is None:
            return None
        new, firings = change(old)
        if await schedules.save(new, firings, act):
            return new
    raise Conflict(f"Schedule {schedule_id} is being changed by others. Try again.")
