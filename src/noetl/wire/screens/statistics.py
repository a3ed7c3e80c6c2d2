"""Statistics of executions. Tested in tests/server/api/test_statistics.py.

Fields are added, never renamed or removed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Name, Number


class StatisticsQuery(Asked, frozen=True):
    """Executions of a path that started since a time; default: of all, since a week."""

    path: Name | None = None  # such as orders/nightly; orders/* means all that begin with orders/
    since: Number | None = None  # milliseconds since the Unix epoch
    by: Literal["playbook", "step"] = "playbook"
    bucket: Annotated[int, Meta(ge=1_000, le=2**40)] | None = None  # ms; widened if there were more than 500


class TimeBucket(Answer, frozen=True):
    """Executions that started within a time, by status."""

    at: int
    counts: dict[str, int]
    p50_ms: int | None  # of completed ones
    p95_ms: int | None


class PathStatistics(Answer, frozen=True):
    """Executions of a playbook."""

    path: str
    counts: dict[str, int]  # by status
    p50_ms: int | None  # of completed ones
    p95_ms: int | None
    good: float | None  # share of completed ones of those that ended


class StepStatistics(Answer, frozen=True):
    """A step of the executions whose logs were read."""

    step: str
    executions: int  # that reached it
    runs: int
    failed: int  # step-runs
    p50_ms: int | None  # of a step-run
    p95_ms: int | None


class GridRow(Answer, frozen=True):
    """An execution; `cells` has the state of each step, empty if it was not reached."""

    execution_id: str
    status: str
    playbook: str
    started_at: int
    ended_at: int | None
    cells: list[str]
    is_rough: bool  # its log was not read: a cell only says whether a step-run failed


class StepGrid(Answer, frozen=True):
    """The newest 50 executions by step."""

    steps: list[str]
    rows: list[GridRow]  # newest first


class Statistics(Answer, frozen=True):
    """Counts, durations and shares of executions, from the newest 20,000."""

    path: str | None
    since: int
    until: int  # end of the last bucket
    executions: int
    is_whole: bool  # false: there are more than were counted; `oldest` is where it ended
    oldest: int | None
    counts: dict[str, int]
    p50_ms: int | None
    p95_ms: int | None
    good: float | None
    bucket_ms: int
    buckets: list[TimeBucket]  # oldest first
    playbooks: list[PathStatistics]  # most executions first; at most 500
    left_out: int  # playbooks
    steps: list[StepStatistics] | None = None  # by=step
    steps_read: int = 0  # executions whose logs were read, of the newest `steps_of`
    steps_of: int = 0
    grid: StepGrid | None = None
