"""Bodies about schedules. Tested in tests/server/api/triggers."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType, field

from noetl.schedules.spec import Calendar, CatchUp, Overlap
from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Count, Limit, Name, Version
from noetl.wire.triggers.fields import Short, TriggerName


class ScheduleAsked(Asked, frozen=True):
    """Create a schedule: a playbook, and one of `cron`, `every` and `calendar`."""

    name: TriggerName
    path: Name
    version: Version | None = None  # default: the latest at each firing
    cron: Short | None = None
    every: Short | Count | None = None  # seconds, or a text such as 15m
    calendar: Calendar | None = None
    timezone: Short = "UTC"
    jitter: Short | Count = 0
    catch_up: CatchUp = "skip"
    overlap: Overlap = "skip"
    payload: dict[str, Any] = field(default_factory=dict)
    time_as: Short = ""
    paused: bool = False


class SchedulePatch(Asked, frozen=True):
    """Change fields; a new `cron`, `every` or `calendar` replaces the old one."""

    version: Version | UnsetType | None = UNSET
    cron: Short | UnsetType = UNSET
    every: Short | Count | UnsetType = UNSET
    calendar: Calendar | UnsetType = UNSET
    timezone: Short | UnsetType = UNSET
    jitter: Short | Count | UnsetType = UNSET
    catch_up: CatchUp | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    payload: dict[str, Any] | UnsetType = UNSET
    time_as: Short | UnsetType = UNSET


class BackfillAsked(Asked, frozen=True):
    """Start the executions of the times from `since` to before `until`."""

    since: Count
    until: Count
    at_once: Annotated[int, Meta(ge=1, le=100)] = 1  # executions that run at once
    dry_run: bool = False


class NextQuery(Asked, frozen=True):
    """How many times to compute, and from when."""

    count: Annotated[int, Meta(ge=1, le=100)] = 10
    after: Count | None = None  # default: now


class FiringsQuery(Asked, frozen=True):
    """Page of firings."""

    before: Count | None = None  # `at` of the last firing of the previous page
    limit: Limit = 50


class ScheduleRow(Answer, frozen=True):
    """A schedule; `owner` is the playbook whose `triggers` define it, if one does."""

    schedule_id: str
    path: str
    timezone: str
    catch_up: str
    overlap: str
    paused: bool
    version: int | None = None
    owner: str = ""
    cron: str | None = None
    every: str | int | None = None
    calendar: Calendar | None = None
    jitter: str | int = 0
    payload: dict[str, Any] = field(default_factory=dict)
    time_as: str = ""
    until: int | None = None  # of a backfill
    at_once: int = 0  # of a backfill
    next_at: int | None = None  # of the next firing; None: it never fires again
    start_at: int | None = None  # with its jitter
    created_at: int = 0
    created_by: str = ""
    changed_at: int = 0


class ScheduleRows(Answer, frozen=True):
    """A page of schedules by id; `next` is the cursor of the next page."""

    schedules: list[ScheduleRow]
    next: str | None = None


class NextRun(Answer, frozen=True):
    """A time of a schedule, and when its execution starts."""

    at: int
    start_at: int
    local: str  # the time in the time zone of the schedule


class NextRuns(Answer, frozen=True):
    """The next times of a schedule, which a pause would skip."""

    schedule_id: str
    timezone: str
    paused: bool
    runs: list[NextRun]


class BackfillMade(Answer, frozen=True):
    """A backfill, which is a schedule with an end; in a dry run it is not made."""

    schedule_id: str
    count: int
    first: int
    last: int
    dry_run: bool = False


class Progress(Answer, frozen=True):
    """How far the firings of a schedule are; `left` times of a backfill are to come."""

    schedule_id: str
    running: int
    ended: int
    failed: int  # of those that ended, all that did not complete
    skipped: int  # started nothing, or were refused
    left: int


class FiringRow(Answer, frozen=True):
    """A firing: the execution it started, or why it started none.

    `state` is due, queued, started, ended, skipped or refused. A row of several missed times has `count` and `last_at`.
    """

    at: int
    local: str
    state: str
    execution_id: str = ""
    reason: str = ""  # late, paused, overlap, limit, replaced, changed, refused
    detail: str = ""
    count: int = 1
    is_more: bool = False  # more than `count`
    last_at: int | None = None
    decided_at: int | None = None


class FiringRows(Answer, frozen=True):
    """A page of firings, the newest first; `next` is `before` of the next page."""

    firings: list[FiringRow]
    next: int | None = None
