"""Rows of schedules in SQL. Tested in tests/conformance/test_schedules.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from noetl.ports.schedules import Firing, Schedule
from noetl.schedules.spec import ScheduleSpec

_spec = msgspec.json.Decoder(ScheduleSpec)


def schedule_row(schedule: Schedule) -> tuple[Any, ...]:
    """Encode a schedule without its revision, in the order of `put_schedule`."""
    spec = msgspec.json.encode(schedule.spec).decode()
    what = (schedule.schedule_id, schedule.path, schedule.version, schedule.owner, spec, schedule.paused)
    return (*what, schedule.next_at, schedule.start_at, schedule.created_at, schedule.created_by, schedule.changed_at)


def schedule_of(row: Sequence[Any]) -> Schedule:
    """Decode a row, in the order of `find_schedule`."""
    schedule_id, path, version, owner, spec, paused, *times = row
    next_at, start_at, created_at, created_by, changed_at, revision = times
    return Schedule(
        schedule_id, path, _spec.decode(spec), version, owner, bool(paused),
        next_at, start_at, created_at, created_by, changed_at, revision,
    )  # fmt: skip


def tally_of(rows: Sequence[Sequence[Any]]) -> dict[str, int]:
    """Return how many firings there are by state, and `failed`."""
    return {"failed": sum(int(row[2]) for row in rows), **{row[0]: int(row[1]) for row in rows}}


def firing_row(firing: Firing) -> tuple[Any, ...]:
    """Encode a firing, in the order of `put_firing`."""
    return msgspec.structs.astuple(firing)


def firing_of(row: Sequence[Any]) -> Firing:
    """Decode a row, in the order of `put_firing`."""
    fields = dict(zip(Firing.__struct_fields__, row, strict=True))
    return Firing(**{**fields, "is_more": bool(fields["is_more"])})
