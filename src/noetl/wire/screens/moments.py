"""Queries and answers about tracks and moments of executions.

Tested in tests/server/api/test_moments.py.
"""

from __future__ import annotations

from typing import Any

from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Count


class TrackQuery(Asked, frozen=True):
    """The event after which to begin; of a stream, `Last-Event-ID` wins."""

    after: Count = 0


class MomentQuery(Asked, frozen=True):
    """The event whose moment to return; default: the last one."""

    seq: Count | None = None


class SpanItems(Answer, frozen=True):
    """Counters of a step-run's loop."""

    total: int
    ended: int
    failed: int


class SpanRow(Answer, frozen=True, gc=False):
    """A step-run in time; milliseconds count from `t0` of its track."""

    run: str
    step: str
    scheduled: tuple[int, int]  # event and ms; so are `started` and `ended`
    started: tuple[int, int] | None
    ended: tuple[int, int] | None
    state: str
    worker: str
    role: str  # step, final, compensation, replay
    attempts: list[tuple[int, int | None, bool | None]]  # from, to, whether it succeeded; the newest 100
    waits: list[tuple[int, int | None, str]]  # from, to, cause: gate, join, signal, child, sleep, delay, …
    child: str | None  # the last child execution that it started
    children: int  # child executions that it started
    of: str | None  # the step-run that it compensates or retries
    after: str | None  # the step-run that sent its last token
    items: SpanItems | None  # of a loop


class PlainRuns(Answer, frozen=True):
    """Ordinary step-runs as columns, one place for each, oldest first.

    Their role is `step` and their state `done`; their only attempt lasted from their start to their end; they have no waits, no
    children and no loop. Times and events of starts and ends count from those of `scheduled`.
    """

    names: list[str]  # of steps and workers
    run: list[str]
    step: list[int]  # index into `names`; so is `worker`
    worker: list[int]
    after: list[str | None]
    scheduled: list[int]  # the event
    scheduled_ms: list[int]
    started: list[int]
    started_ms: list[int]
    ended: list[int]
    ended_ms: list[int]


class TrackPart(Answer, frozen=True):
    """What changed on the screen of an execution after an event, by event.

    A value holds from its event until the next one of its key; before the first one it is 0. Keys: `x` status, `s:STEP` state,
    `n:STEP` tokens, `j:STEP` join (arrived × 1,000,000 + needed, while it waits), `a:STEP#ARC` times taken, `r:STEP#ARC` times
    refused, `l:RUN` ended items, `f:RUN` failed items, `d:STEP` pending dead letters, `c` version of ctx. Values of `x` and `s`
    are indexes into `states`.
    """

    after: int
    seq: int  # the last event that it includes
    t0: int  # time of the first event
    head_at: int  # time of event `seq`
    every: int  # 1, or the distance of the events in `times` of a very long log
    times: list[int]  # ms after `t0` of the events after `after`; of all with a number 1 + n × `every`
    runs: list[SpanRow]
    plain: PlainRuns | None  # the ordinary ones, if there are more than 2,000 step-runs; the others are in `runs`
    dropped: int  # oldest step-runs of a very long execution that `runs` lacks
    series: dict[str, tuple[list[int], list[int]]]  # key → events, values
    thinned: list[str]  # keys whose older values are exact at their marks only: ask for the moment
    states: list[str]


class MomentToken(Answer, frozen=True):
    """A token, and what it does: parked by the gate, joining siblings, or ready."""

    token: str
    step: str
    state: str


class MomentChange(Answer, frozen=True):
    """A place of the state that an event changed; `before` or `after` may be missing."""

    path: str
    before: Any = None
    after: Any = None


class MomentAnswer(Answer, frozen=True):
    """An execution after one event; a value over 2 kB is `{cut, bytes}`."""

    seq: int
    event: str | None  # type of the event
    at: int | None  # its time
    status: str
    checksum: str  # as `noetl replay` prints it
    tokens: list[MomentToken]
    ctx: dict[str, Any]
    changes: list[MomentChange]  # by this event
    left_out: dict[str, int]  # how many tokens, keys of ctx and changes
