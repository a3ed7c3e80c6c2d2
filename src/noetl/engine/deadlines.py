"""Tells which time-outs run for what has not ended: of the task that runs, of the item, the loop, the step, the execution.

Of a task it is known from what its worker recorded when it began; of the items of a loop only how long each may take. Ends
nothing: the worker and the timers do. Tested in tests/unit/engine/test_deadlines.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from noetl.engine.plan import Plan
from noetl.engine.state import Execution, StepRun
from noetl.model.events import Event

_CAUSES = {
    "execution": "the execution (`executor.spec.timeout_s`)",
    "step": "the step (`timeout_s`)",
    "deadline": "the step, from when it was scheduled (`deadline_s`)",
    "loop": "the loop (`total_timeout_ms`)",
}
_BEGUN = ("task.started", "task.attempt.started")
_ENDED = ("task.done", "task.failed", "task.attempt.done", "task.attempt.failed")
_TAKEN = ("step.started", "loop.iteration.started")


class Deadline(Struct, frozen=True, omit_defaults=True):
    """A time at which something is ended, or how long it may take where its beginning is not known here."""

    what: str
    at: int | None = None
    ms: float | None = None


def running_tasks(events: Sequence[Event]) -> dict[str, list[Deadline]]:
    """Give the time-outs of the tasks that run now, by run."""
    under_way: dict[tuple[str, str], Event] = {}
    taken: dict[str, int] = {}  # when a worker last began with a run: a task that it found under way begins again
    for event in events:
        run = str(event.step_run_id)
        if event.event_type in _BEGUN:
            under_way[run, str(event.task_run_id)] = event
        elif event.event_type in _ENDED:
            under_way.pop((run, str(event.task_run_id)), None)
        elif event.event_type in _TAKEN:
            taken[run] = event.timestamp
    found: dict[str, list[Deadline]] = {}
    for (run, _), event in under_way.items():
        allowed = event.payload.get("timeout_ms")
        if allowed is not None:
            begun = max(event.timestamp, taken.get(run, 0))
            name = f"the task `{event.entity_id}` (`timeout_ms`)"
            found.setdefault(run, []).append(Deadline(name, begun + round(allowed), allowed))
    return found


def deadlines(
    plan: Plan, state: Execution, run: StepRun | None, tasks: Mapping[str, list[Deadline]]
) -> tuple[Deadline, ...]:
    """Give the time-outs that a run is under, or a token where there is no run; the earliest first."""
    found: list[Deadline] = []
    if run is not None:
        found += tasks.get(run.run_id, []) if run.phase == "started" or run.loop is not None else []
        found += _of_items(plan, run)
    for timer in state.timers.values():
        own = run is not None and timer.run_id == run.run_id
        if timer.cause in _CAUSES and (timer.cause == "execution" or own):
            found.append(Deadline(_CAUSES[timer.cause], timer.at))
    return tuple(sorted(found, key=lambda one: (one.at is None, one.at or 0)))


def _of_items(plan: Plan, run: StepRun) -> Iterator[Deadline]:
    step = plan.step(run.step)
    if step.loop is None or run.loop is None:
        return
    usual = (plan.setting("timeouts", step) or {}).get("loop_item_ms")
    given: Any = usual if step.loop.item_timeout_ms is None else step.loop.item_timeout_ms.data
    if isinstance(given, int | float) and not isinstance(given, bool):
        yield Deadline("each item (`item_timeout_ms`)", ms=float(given))
    elif given is not None:
        yield Deadline(f"each item (`item_timeout_ms: {given}`)")
    for task in step.tasks:
        own = task.timeout_ms.data if task.timeout_ms is not None else None
        if isinstance(own, int | float) and not isinstance(own, bool):
            yield Deadline(f"each attempt of the task `{task.label}` (`timeout_ms`)", ms=float(own))
