"""Which firings are due at a moment, which are missed, and when the next one is.

    found = due(spec, times, "nightly", next_at=…, now=…)
    found.starts       # times to start executions for, the oldest first
    found.missed       # what is not started, or None
    found.next_at      # the next time, or None: it never fires again

A firing is late when it should have started more than a minute ago: no server ran, or the clock jumped. `catch_up` decides
about late firings: `skip` starts none, `last` starts the newest one if no other firing is due, `all` starts all. Reads no
clock. Tested in tests/unit/schedules/test_due.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import islice
from typing import Final

import msgspec

from noetl.schedules.spec import ScheduleSpec
from noetl.schedules.times import Times, latest

LATE_MS: Final = 60_000
MOST_STARTS: Final = 100  # of one look; the next look continues
MOST_COUNTED: Final = 1_000  # missed firings; more are not counted


class Missed(msgspec.Struct, frozen=True):
    """Consecutive firings that start nothing."""

    first: int
    last: int
    count: int
    is_more: bool = False  # there are more than were counted


class Due(msgspec.Struct, frozen=True):
    """What a look at a schedule found."""

    starts: tuple[int, ...]
    missed: Missed | None
    next_at: int | None


def due(spec: ScheduleSpec, times: Times, schedule_id: str, next_at: int, now: int, most: int = MOST_STARTS) -> Due:
    """Return the firings from `next_at` on that are due now, up to a number."""
    missed: Missed | None = None
    cursor: int | None = next_at
    newest: int | None = None  # late firing that starts after all
    if spec.catch_up != "all":
        last = latest(times, next_at, now - LATE_MS - spec.jitter_ms)
        if last is not None:
            cursor = times.after(last)
            is_other_due = cursor is not None and start_at(spec, schedule_id, cursor) <= now
            newest = last if spec.catch_up == "last" and not is_other_due else None
            missed = between(times, next_at, last if newest is None else last - 1)
    starts = [] if newest is None else [newest]
    while cursor is not None and start_at(spec, schedule_id, cursor) <= now and len(starts) < most:
        starts.append(cursor)
        cursor = times.after(cursor)
    return Due(tuple(starts), missed, cursor)


def between(times: Times, first: int, until: int) -> Missed | None:
    """Return the firings in [first, until] as missed, or None if there are none."""
    last = latest(times, first, until)
    if last is None:
        return None
    count, is_more, start = 0, False, first
    for at in upcoming(times, first - 1):
        if at > last:
            break
        if count == MOST_COUNTED:
            is_more = True
            break
        start = at if count == 0 else start
        count += 1
    return Missed(start, last, count, is_more)


def counted(times: Times, first: int, most: int) -> int:
    """Count the times from the first one on, up to a number."""
    return sum(1 for _ in islice(upcoming(times, first - 1), most))


def upcoming(times: Times, moment: int) -> Iterator[int]:
    """Yield the times after a moment."""
    found = times.after(moment)
    while found is not None:
        yield found
        found = times.after(found)


def start_at(spec: ScheduleSpec, schedule_id: str, at: int) -> int:
    """Return when the firing of a time starts: later by its part of the jitter.

    The part depends on schedule and time alone, so every server finds the same.
    """
    if not spec.jitter_ms:
        return at
    drawn = int.from_bytes(sha256(f"{schedule_id}:{at}".encode()).digest()[:8], "big")
    return at + drawn % spec.jitter_ms
