"""Questions about step-runs and items of loops, and their answers.

Fields are added, never renamed or removed. Tested in tests/server/api/test_runs.py.
"""

from __future__ import annotations

from typing import Any, Literal

from noetl.wire.answers import Answer, DeadlineRow
from noetl.wire.requests import Asked, Count, Limit, Name

ItemState = Literal["not issued", "queued", "running", "waiting", "done", "failed", "skipped", "repaired"]


class RunQuery(Asked, frozen=True):
    """A step-run such as `fetch#2`, or an item of its loop; default: as it is now."""

    run: Name
    item: Count | None = None
    seq: Count | None = None


class ItemsQuery(Asked, frozen=True, rename={"as_": "as"}):
    """The items of a loop as a map of marks, or as a list."""

    run: Name
    as_: Literal["map", "list"] = "map"
    state: tuple[ItemState, ...] = ()  # of the list; repeatable
    sort: Literal["index", "slow"] = "index"
    after: Count = 0  # `next` of the previous page
    limit: Limit = 100


class DecisionRow(Answer, frozen=True):
    """What the policy of a task decided on an outcome."""

    do: str
    rule: int | None = None
    delay_ms: float | None = None
    read: dict[str, Any] | None = None


class AttemptRow(Answer, frozen=True):
    """One attempt of a task; `ok` is null while it runs."""

    task: str
    attempt: int
    kind: str
    seq: int
    started_at: int | None
    ended_at: int | None
    ok: bool | None
    error: Any
    decision: DecisionRow | None


class RunLetter(Answer, frozen=True):
    """The dead letter of a step-run or an item."""

    message_id: str
    status: str
    fingerprint: str
    attempts: int


class RunRow(Answer, frozen=True):
    """A step-run or an item: what it got, what was tried, and how it ended.

    `input` is that of the last task as rendered, where the server knows it: of dead letters. Otherwise it is null, and
    only the worker had it.
    """

    execution_id: str
    run: str
    item: int | None
    step: str
    number: int
    role: str
    state: str  # scheduled, running, waiting, done, failed, skipped, cancelled, forced, repaired; of items: queued, not issued
    args: dict[str, Any]
    value: Any  # of an item; a reference if the list is stored
    key: str | None
    scheduled_at: int
    scheduled_seq: int
    started_at: int | None
    ended_at: int | None
    ended_seq: int | None
    worker: str | None
    workers: list[str]
    attempts: list[AttemptRow]
    signal: str | None
    child: str | None
    until: int | None
    result: Any
    ref: str | None  # of a stored result
    error: Any
    loop: dict[str, int] | None
    seq: int  # the last event that was read
    deadlines: list[DeadlineRow]  # of an active step-run, earliest first
    input: Any = None
    letter: RunLetter | None = None
    by: str | None = None  # who completed it by hand
    reason: str | None = None  # why, if that person said so


class ItemRow(Answer, frozen=True):
    """An item of a loop."""

    index: int
    state: ItemState
    key: str | None
    started_at: int | None
    ended_at: int | None
    duration_ms: int | None
    error: str | None


class ItemRange(Answer, frozen=True):
    """A range of items with its number of items by state."""

    start: int
    count: int
    states: dict[str, int]


class ItemsRow(Answer, frozen=True):
    """The items of a loop.

    `map` has one character for each: `.` not issued, `q` queued, `r` running, `w` waiting, `d` done, `f` failed, `k`
    skipped, `p` repaired. Above a million items, `ranges` counts them instead.
    """

    execution_id: str
    run: str
    total: int
    counts: dict[str, int]
    seq: int
    map: str | None = None
    ranges: list[ItemRange] | None = None
    rows: list[ItemRow] | None = None  # a page of the list
    next: int | None = None
