"""Time-outs that apply: of the task, item, loop, step and execution.

The deadline of a task follows from the record of its start. An item of a loop starts with its piece, or when another item
of the piece has ended, so its deadline is as exact as the reports; only the nearest ones are returned. Workers and timers
enforce them. Tested in tests/unit/engine/queries/test_deadlines.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from noetl.engine.decision.scope import Scope, functions, number
from noetl.engine.plan.plan import Plan
from noetl.engine.state.execution import Execution, StepRun
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
_ITEM_ENDED = ("loop.iteration.done", "loop.iteration.failed", "step.suspended")
_MOST_ITEMS = 5  # of a loop whose deadlines are listed one by one


class Deadline(Struct, frozen=True, omit_defaults=True):
    """When something times out, or how long it may take if its start is unknown."""

    what: str
    at: int | None = None
    ms: float | None = None


class Underway(Struct, frozen=True):
    """Start times of tasks and items, from a log."""

    tasks: Mapping[str, list[Deadline]]  # time-outs of running tasks, by run
    taken: Mapping[tuple[str, str], int]  # (run, piece) → when its worker started it
    ended: Mapping[tuple[str, str], list[int]]  # (run, piece) → when its items ended, in order


class UnderwayLog:
    """Collects start times from the events of a log, in order."""

    def __init__(self) -> None:
        self._taken: dict[tuple[str, str], int] = {}
        self._ended: dict[tuple[str, str], list[int]] = {}
        self._running: dict[tuple[str, str], Event] = {}
        self._started: dict[str, int] = {}  # when a worker last started a run: its tasks restart then

    def add(self, event: Event) -> None:
        """Take the next event."""
        kind, run = event.event_type, str(event.step_run_id)
        if kind in _BEGUN:
            self._running[run, str(event.task_run_id)] = event
        elif kind in _ENDED:
            self._running.pop((run, str(event.task_run_id)), None)
        elif kind in _TAKEN:
            self._started[run] = event.timestamp
        if kind == "loop.iteration.started":
            self._taken[run, str(event.payload.get("chunk"))] = event.timestamp
        elif kind in _ITEM_ENDED:
            self._ended.setdefault((run, str(event.payload.get("chunk"))), []).append(event.timestamp)

    def now(self) -> Underway:
        """Return the start times; later events change them."""
        return Underway(self._tasks(), self._taken, self._ended)

    def _tasks(self) -> dict[str, list[Deadline]]:
        limits: dict[str, list[Deadline]] = {}
        for (run, _), event in self._running.items():
            allowed = event.payload.get("timeout_ms")
            if allowed is not None:
                begun = max(event.timestamp, self._started.get(run, 0))
                name = f"the task `{event.entity_id}` (`timeout_ms`)"
                limits.setdefault(run, []).append(Deadline(name, begun + round(allowed), allowed))
        return limits


def under_way(events: Iterable[Event]) -> Underway:
    """Return the start times of a log."""
    made = UnderwayLog()
    for event in events:
        made.add(event)
    return made.now()


def deadlines(
    plan: Plan, state: Execution, run: StepRun | None, underway: Underway, index: int | None = None
) -> tuple[Deadline, ...]:
    """Return the time-outs of a run, a suspended item or a token, earliest first."""
    limits: list[Deadline] = []
    if run is not None and index is not None:
        suspended = run.loop.suspended.get(index) if run.loop is not None else None
        ends = suspended.pipeline.get("deadline") if suspended is not None else None
        limits += [Deadline(f"item {index} (`item_timeout_ms`)", ends)] if ends else []
    elif run is not None:
        limits += underway.tasks.get(run.run_id, []) if run.phase == "started" or run.loop is not None else []
        limits += _of_items(plan, state, run, underway)
    for timer in state.timers.values():
        own = run is not None and timer.run_id == run.run_id
        if timer.cause in _CAUSES and (timer.cause == "execution" or own):
            limits.append(Deadline(_CAUSES[timer.cause], timer.at))
    return tuple(sorted(limits, key=lambda one: (one.at is None, one.at or 0)))


def _of_items(plan: Plan, state: Execution, run: StepRun, underway: Underway) -> Iterator[Deadline]:
    step = plan.step(run.step)
    if step.loop is None or run.loop is None:
        return
    scope, calls = Scope(state, run.args), functions(state, state.at)
    usual = (plan.setting("timeouts", step) or {}).get("loop_item_ms")
    setting: Any = usual if step.loop.item_timeout_ms is None else step.loop.item_timeout_ms.data
    running = sorted(_running(run, underway), key=lambda pair: pair[::-1]) if setting is not None else []
    allowed = number(setting, scope, calls) if setting is not None else None
    if allowed is None and setting is not None:
        yield Deadline(f"each item (`item_timeout_ms: {setting}`)")
    elif allowed is not None and not running:
        yield Deadline("each item (`item_timeout_ms`)", ms=allowed)
    elif allowed is not None:
        shown = [(f"item {index}", begun) for index, begun in running[:_MOST_ITEMS]]
        rest = running[_MOST_ITEMS:]
        shown += [(f"the next of {len(rest)} more items under way", rest[0][1])] if rest else []
        for name, begun in shown:
            yield Deadline(f"{name} (`item_timeout_ms`)", begun + round(allowed), allowed)
    for task in step.tasks:
        own = number(task.timeout_ms.data, scope, calls) if task.timeout_ms is not None else None
        if own is not None:
            yield Deadline(f"each attempt of the task `{task.label}` (`timeout_ms`)", ms=own)


def _running(run: StepRun, underway: Underway) -> Iterator[tuple[int, int]]:
    """Yield the running items and their starts: the end of one starts the next."""
    for name, piece in run.loop.pieces.items() if run.loop is not None else ():
        taken = underway.taken.get((run.run_id, name))
        if taken is None or piece.claim:
            continue  # no worker has started it
        ended = underway.ended.get((run.run_id, name), [])
        for index in sorted(piece.pending)[: piece.width]:
            turn = index - piece.start - piece.width  # this many ended before it could start
            begun = taken if turn < 0 else ended[turn] if turn < len(ended) else None
            if begun is not None:
                yield index, max(begun, taken)
