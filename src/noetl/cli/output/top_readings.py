"""What `noetl top` shows, read from the API of a server.

Tested in tests/acceptance/servers/test_top_cli.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from noetl.model.errors import NoetlError

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.answers import ExecutionRow, PoolRow, WorkerRow

_FAILURES: Final = 10
_ENDED: Final = "noetl_executions_completed_total"
_STEPS: Final = "noetl_step_runs_total"
_STARTED: Final = "noetl_executions_started_total"
_DURATION: Final = "noetl_step_duration_seconds"
_Sums = dict[tuple[str, str], tuple[float, float]]


class Step(NamedTuple):
    """Ended runs of one step."""

    workflow: str
    step: str
    runs: int
    mean_s: float


class Counted(NamedTuple):
    """Counters of one server at one time."""

    at: int  # in milliseconds
    started: float
    ended: float
    steps: float
    failed: float
    durations: _Sums  # workflow, step → number of runs and seconds


class Reading(NamedTuple):
    """One read of a server."""

    at: int
    version: str
    open: Mapping[str, int]  # executions by status
    day: Mapping[str, int]  # executions of 24 hours by status
    pools: list[PoolRow]
    workers: list[WorkerRow]
    failures: list[ExecutionRow]
    counted: Counted | None  # None: this server counts nothing


class Rates(NamedTuple):
    """What happened between two reads of a server, per second."""

    seconds: float
    started: float
    ended: float
    steps: float
    failed: float
    slowest: list[Step]


async def read(client: Client) -> Reading:
    """Read everything that a frame shows. Raises NoetlError."""
    health = await client.health()
    overview, workers = await client.overview(), await client.workers()
    failed = await client.executions(status=["failed", "partial"], limit=_FAILURES)
    try:
        counted = count(await client.metrics(), health.time)
    except NoetlError:  # metrics are switched off
        counted = None
    return Reading(
        health.time,
        health.version,
        overview.now.counts,
        overview.day.counts,
        overview.pools,
        [row for row in workers if row.status != "gone"],
        failed.executions,
        counted,
    )


def count(text: str, at: int) -> Counted:
    """Return the counters in a page of metrics."""
    from prometheus_client.parser import text_string_to_metric_families

    totals: dict[str, float] = {}
    runs: dict[tuple[str, str], float] = {}
    seconds: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name, labels = sample.name, sample.labels
            step = labels.get("workflow", ""), labels.get("step", "")
            if name == f"{_DURATION}_count":
                runs[step] = sample.value
            elif name == f"{_DURATION}_sum":
                seconds[step] = sample.value
            elif name in (_STARTED, _ENDED, _STEPS):
                totals[name] = totals.get(name, 0) + sample.value
                if name == _STEPS and labels.get("ok") == "false":
                    totals["failed"] = totals.get("failed", 0) + sample.value
    durations = {step: (number, seconds.get(step, 0.0)) for step, number in runs.items()}
    return Counted(
        at, totals.get(_STARTED, 0), totals.get(_ENDED, 0), totals.get(_STEPS, 0), totals.get("failed", 0), durations
    )


def rates(now: Counted, before: Counted) -> Rates:
    """Return the rates between two reads; a server that restarted counts from 0 again."""
    if any(mine < theirs for mine, theirs in zip(now[1:5], before[1:5], strict=True)):
        before = Counted(before.at, 0, 0, 0, 0, {})
    seconds = max(0.001, (now.at - before.at) / 1000)
    started, ended, steps, failed = (
        (mine - theirs) / seconds for mine, theirs in zip(now[1:5], before[1:5], strict=True)
    )
    return Rates(seconds, started, ended, steps, failed, slowest_steps(now.durations, before.durations))


def slowest_steps(now: _Sums, before: Mapping[Any, tuple[float, float]] | None = None) -> list[Step]:
    """Return the steps that ended since an earlier read, the slowest first."""
    found = []
    for (workflow, step), (runs, seconds) in now.items():
        earlier, spent = (before or {}).get((workflow, step), (0.0, 0.0))
        if runs > earlier:
            found.append(Step(workflow, step, int(runs - earlier), (seconds - spent) / (runs - earlier)))
    return sorted(found, key=lambda one: (-one.mean_s, one.workflow, one.step))
