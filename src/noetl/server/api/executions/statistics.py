"""Statistics of executions. Tested in tests/server/api/test_statistics.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from noetl.engine.queries.history.statistics import StepTimes, step_sums, sums
from noetl.model.errors import InvalidInput
from noetl.ports import Selection
from noetl.ports.log import Timing
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal
from noetl.wire.requests import TRIAL
from noetl.wire.screens.statistics import (
    GridRow,
    PathStatistics,
    Statistics,
    StatisticsQuery,
    StepGrid,
    StepStatistics,
    TimeBucket,
)

_WEEK_MS = 7 * 86_400_000
_PAGE, _MOST = 2_000, 20_000  # executions that are counted
_MOST_BUCKETS, _BUCKETS, _MOST_PATHS = 500, 56, 500
_STEPS_OF, _GRID = 200, 50  # executions whose steps are read, and shown one by one
noun = Noun("statistics", "Statistics of executions.")


@noun.route("GET", "/api/statistics", "viewer", problems=(400,), of="path")
async def statistics(call: Call, query: StatisticsQuery) -> Statistics:
    """Return counts, durations and shares of executions, by playbook or step."""
    is_prefix = query.path is not None and query.path.endswith("*")
    if query.by == "step" and (query.path is None or is_prefix):
        raise Refusal(
            400, "invalid-input", "Steps belong to one playbook.", where="query path", fix="Name its path, without `*`."
        )
    now = call.services.clock.now()
    since, bucket_ms = _window(query, now)
    wanted = Selection(
        path=None if is_prefix else query.path,
        prefix=str(query.path)[:-1] if is_prefix else None,
        without=TRIAL,
        within=call.reach,
    )
    found, is_whole = await _counted(call, wanted, since)
    paths, buckets = _paths(found), _buckets(found, since, now, bucket_ms)
    answer = Statistics(
        path=query.path,
        since=since,
        until=buckets[-1].at + bucket_ms,
        executions=len(found),
        is_whole=is_whole,
        oldest=found[-1].started_at if found else None,
        bucket_ms=bucket_ms,
        buckets=buckets,
        playbooks=paths[:_MOST_PATHS],
        left_out=max(0, len(paths) - _MOST_PATHS),
        **to_builtins(sums(map(_times, found))),
    )
    return answer if query.by == "playbook" else await _with_steps(call, answer, wanted)


def _window(query: StatisticsQuery, now: int) -> tuple[int, int]:
    """Return the beginning of the time to count, and the length of its buckets."""
    since = min(now, now - _WEEK_MS if query.since is None else query.since)
    bucket_ms = max(query.bucket or (now - since) // _BUCKETS, -(-(now - since) // (_MOST_BUCKETS - 2)), 1_000)
    whole = since - since % bucket_ms + bucket_ms  # the first bucket that is in the week as a whole
    return since if query.since is not None or whole > now else whole, bucket_ms


async def _counted(call: Call, wanted: Selection, since: int) -> tuple[list[Timing], bool]:
    """Return the newest executions since a time, and whether these are all."""
    found: list[Timing] = []
    while len(found) < _MOST:
        before = found[-1].execution_id if found else None
        page = await call.services.store.timings(replace(wanted, before=before, limit=_PAGE))
        kept = [one for one in page if one.started_at >= since]
        found += kept
        if len(kept) < _PAGE:
            return found, True
    return found, False


def _times(one: Timing) -> tuple[str, int, int | None]:
    return one.status, one.started_at, one.ended_at


def _paths(found: Sequence[Timing]) -> list[PathStatistics]:
    by_path: dict[str, list[Timing]] = {}
    for one in found:
        by_path.setdefault(one.path, []).append(one)
    ordered = sorted(by_path.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return [PathStatistics(path=path, **to_builtins(sums(map(_times, timings)))) for path, timings in ordered]


def _buckets(found: Sequence[Timing], since: int, now: int, bucket_ms: int) -> list[TimeBucket]:
    """Return the buckets of a time; they begin at multiples of their length."""
    first = since // bucket_ms
    inside: list[list[Timing]] = [[] for _ in range(now // bucket_ms - first + 1)]
    for one in found:
        place = one.started_at // bucket_ms - first
        if place < len(inside):  # a clock may have been set back
            inside[place].append(one)
    made = [sums(map(_times, timings)) for timings in inside]
    return [
        TimeBucket(at=(first + number) * bucket_ms, counts=one.counts, p50_ms=one.p50_ms, p95_ms=one.p95_ms)
        for number, one in enumerate(made)
    ]


async def _with_steps(call: Call, answer: Statistics, wanted: Selection) -> Statistics:
    """Add the steps of the newest executions, and a grid of executions by step."""
    rows = await call.services.store.executions(replace(wanted, limit=_STEPS_OF))
    rows = [row for row in rows if int(row.get("started_at", 0)) >= answer.since]
    read = await call.services.step_times.of(rows)
    order = await _order(call, rows)
    known = [one for one in read if one is not None]
    steps = step_sums(known, order)
    names = list(dict.fromkeys([*order, *(one.step for one in steps)]))
    grid = [_grid_row(row, times, names) for row, times in zip(rows[:_GRID], read, strict=False)]
    return replace(
        answer,
        steps=[StepStatistics(**to_builtins(one)) for one in steps],
        steps_read=len(known),
        steps_of=len(rows),
        grid=StepGrid(steps=names, rows=grid),
    )


async def _order(call: Call, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the steps as the playbook of the newest execution lists them."""
    if not rows:
        return []
    try:
        plan = await call.services.control.plan(str(rows[0].get("playbook", "")))
    except InvalidInput:  # its playbook is gone
        return []
    return [step.name for step in plan.playbook.workflow]


def _grid_row(row: Mapping[str, Any], times: Mapping[str, StepTimes] | None, names: Sequence[str]) -> GridRow:
    states = {step: one.state for step, one in times.items()} if times is not None else _rough(row.get("steps") or {})
    return GridRow(
        execution_id=str(row["execution_id"]),
        status=str(row["status"]),
        playbook=str(row.get("playbook", "")),
        started_at=int(row.get("started_at", 0)),
        ended_at=row.get("ended_at"),
        cells=[states.get(name, "") for name in names],
        is_rough=times is None,
    )


def _rough(counts: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """Return states of steps from counts of their step-runs, where a log is too long."""
    return {
        step: "failed" if one.get("failed") else "done"
        for step, one in counts.items()
        if one.get("done") or one.get("failed")
    }
