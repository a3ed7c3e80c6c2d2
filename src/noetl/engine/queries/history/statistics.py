"""Statistics of executions and of their steps; percentiles are exact.

Tested in tests/unit/engine/queries/history/test_statistics.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from noetl.engine.queries.moment import STATES
from noetl.engine.queries.track import Track

GOOD: Final = "completed"
_ENDED: Final = (GOOD, "partial", "failed", "cancelled")


class StepTimes(Struct, frozen=True):
    """A step of one execution."""

    state: str  # of its last step-run
    runs: int = 0
    failed: int = 0
    durations: tuple[int, ...] = ()  # of its step-runs that ended, in ms


class StepSums(Struct, frozen=True):
    """A step of many executions."""

    step: str
    executions: int  # that reached it
    runs: int
    failed: int  # step-runs
    p50_ms: int | None
    p95_ms: int | None


class Sums(Struct, frozen=True):
    """Many executions: their number by status, and the durations of completed ones."""

    counts: dict[str, int]
    p50_ms: int | None
    p95_ms: int | None
    good: float | None  # share of completed ones of those that ended


def percentile(values: Collection[int], percent: int) -> int | None:
    """Return the smallest value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None


def sums(executions: Iterable[tuple[str, int, int | None]]) -> Sums:
    """Sum up executions, given as status, start and end."""
    counts: dict[str, int] = {}
    took: list[int] = []
    for status, started, ended in executions:
        counts[status] = counts.get(status, 0) + 1
        if status == GOOD and ended is not None:
            took.append(ended - started)
    total = sum(counts.get(status, 0) for status in _ENDED)
    good = counts.get(GOOD, 0) / total if total else None
    return Sums(counts, percentile(took, 50), percentile(took, 95), good)


def step_times(track: Track) -> dict[str, StepTimes]:
    """Return the steps of an execution, in the order in which they were reached."""
    states = {key[2:]: STATES[series.last] for key, series in track.series.items() if key.startswith("s:")}
    runs = dict.fromkeys(states, 0)
    failed, took = dict(runs), {step: list[int]() for step in states}
    for span in track.spans.values():
        if span.role == "replay" or span.step not in states:
            continue
        runs[span.step] += 1
        failed[span.step] += span.state == "failed"
        if span.ended is not None:
            took[span.step].append(span.ended[1] - (span.started or span.scheduled)[1])
    return {step: StepTimes(state, runs[step], failed[step], tuple(took[step])) for step, state in states.items()}


def step_sums(executions: Sequence[Mapping[str, StepTimes]], order: Sequence[str]) -> list[StepSums]:
    """Sum up the steps of executions: those of `order` first, then as they come."""
    found: dict[str, list[StepTimes]] = {}
    for steps in executions:
        for step, times in steps.items():
            found.setdefault(step, []).append(times)
    names = [*(step for step in order if step in found), *(step for step in found if step not in set(order))]
    return [_step(name, found[name]) for name in names]


def _step(name: str, times: Sequence[StepTimes]) -> StepSums:
    took = [ms for one in times for ms in one.durations]
    runs, failed = sum(one.runs for one in times), sum(one.failed for one in times)
    return StepSums(name, len(times), runs, failed, percentile(took, 50), percentile(took, 95))
