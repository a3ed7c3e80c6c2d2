"""Tells which time-outs run for what has not ended: of the task that runs, of the item, the loop, the step, the execution.

Of a task it is known from what its worker recorded when it began. An item of a loop begins with its piece or when another
one of the piece has ended, so its deadline is known as exactly as reports come; only the nearest ones are told. Ends nothing:
the worker and the timers do. Tested in tests/unit/engine/test_deadlines.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from noetl.engine.names import Scope, functions, number
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
_ITEM_ENDED = ("loop.iteration.done", "loop.iteration.failed", "step.suspended")
_MOST_ITEMS = 5  # of a loop whose deadlines are told one by one


class Deadline(Struct, frozen=True, omit_defaults=True):
    """A time at which something is ended, or how long it may take where its beginning is not known here."""

    what: str
    at: int | None = None
    ms: float | None = None


class Underway(Struct, frozen=True):
    """What a log tells of the beginning of tasks and items."""

    tasks: Mapping[str, list[Deadline]]  # the time-outs of tasks that run now, by run
    taken: Mapping[tuple[str, str], int]  # (run, piece) → when its worker began with it
    ended: Mapping[tuple[str, str], list[int]]  # (run, piece) → when items of it ended, in that order


def under_way(events: Sequence[Event]) -> Underway:
    """Gather from a log what is under way since when."""
    taken: dict[tuple[str, str], int] = {}
    ended: dict[tuple[str, str], list[int]] = {}
    for event in events:
        piece = (str(event.step_run_id), str(event.payload.get("chunk")))
        if event.event_type == "loop.iteration.started":
            taken[piece] = event.timestamp
        elif event.event_type in _ITEM_ENDED:
            ended.setdefault(piece, []).append(event.timestamp)
    return Underway(_tasks(events), taken, ended)


def _tasks(events: Sequence[Event]) -> dict[str, list[Deadline]]:
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
    plan: Plan, state: Execution, run: StepRun | None, known: Underway, index: int | None = None
) -> tuple[Deadline, ...]:
    """Give the time-outs that a run is under, or one item of it that waits, or a token where there is no run; earliest first."""
    found: list[Deadline] = []
    if run is not None and index is not None:
        held = run.loop.suspended.get(index) if run.loop is not None else None
        ends = held.pipeline.get("deadline") if held is not None else None
        found += [Deadline(f"item {index} (`item_timeout_ms`)", ends)] if ends else []
    elif run is not None:
        found += known.tasks.get(run.run_id, []) if run.phase == "started" or run.loop is not None else []
        found += _of_items(plan, state, run, known)
    for timer in state.timers.values():
        own = run is not None and timer.run_id == run.run_id
        if timer.cause in _CAUSES and (timer.cause == "execution" or own):
            found.append(Deadline(_CAUSES[timer.cause], timer.at))
    return tuple(sorted(found, key=lambda one: (one.at is None, one.at or 0)))


def _of_items(plan: Plan, state: Execution, run: StepRun, known: Underway) -> Iterator[Deadline]:
    step = plan.step(run.step)
    if step.loop is None or run.loop is None:
        return
    scope, calls = Scope(state, run.args), functions(state, state.at)
    usual = (plan.setting("timeouts", step) or {}).get("loop_item_ms")
    given: Any = usual if step.loop.item_timeout_ms is None else step.loop.item_timeout_ms.data
    running = sorted(_running(run, known), key=lambda pair: pair[::-1]) if given is not None else []
    allowed = number(given, scope, calls) if given is not None else None
    if allowed is None and given is not None:
        yield Deadline(f"each item (`item_timeout_ms: {given}`)")
    elif allowed is not None and not running:
        yield Deadline("each item (`item_timeout_ms`)", ms=allowed)
    elif allowed is not None:
        told = [(f"item {index}", begun) for index, begun in running[:_MOST_ITEMS]]
        rest = running[_MOST_ITEMS:]
        told += [(f"the next of {len(rest)} more items under way", rest[0][1])] if rest else []
        for name, begun in told:
            yield Deadline(f"{name} (`item_timeout_ms`)", begun + round(allowed), allowed)
    for task in step.tasks:
        own = number(task.timeout_ms.data, scope, calls) if task.timeout_ms is not None else None
        if own is not None:
            yield Deadline(f"each attempt of the task `{task.label}` (`timeout_ms`)", ms=own)


def _running(run: StepRun, known: Underway) -> Iterator[tuple[int, int]]:
    """Give the items that run now, and since when: so many of a piece run at once, and one that ends lets the next begin."""
    for name, piece in run.loop.pieces.items() if run.loop is not None else ():
        taken = known.taken.get((run.run_id, name))
        if taken is None or piece.claim:
            continue  # no worker has told that it has it
        ended = known.ended.get((run.run_id, name), [])
        for index in sorted(piece.pending)[: piece.width]:
            turn = index - piece.start - piece.width  # so many ended before it could begin
            begun = taken if turn < 0 else ended[turn] if turn < len(ended) else None
            if begun is not None:
                yield index, max(begun, taken)
