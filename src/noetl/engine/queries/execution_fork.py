"""Forks of executions: a copy of the history up to an event that continues.

Its log is complete; work in flight is queued again. Tested in tests/unit/engine/queries/test_execution_fork.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from noetl.engine.decision.builder import Decision, projection
from noetl.engine.decision.work import item
from noetl.engine.plan.plan import Plan
from noetl.engine.routing import loop_results
from noetl.engine.routing.slots import limits_of, slot_of
from noetl.engine.routing.start import check_waits, queued_by
from noetl.engine.state.dead_letters import change_of
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution, StepRun
from noetl.engine.state.writes import put
from noetl.model.errors import InvalidInput
from noetl.model.events import Event
from noetl.model.ids import event_id, message_digest
from noetl.model.work import WorkItem

# Last events after which nothing has run yet.
_UNDECIDED = frozenset((
    "playbook.execution.requested", "playbook.request.evaluated", "playbook.started", "execution.queued",
    "execution.admitted", "workflow.started",
))  # fmt: skip


def failed_step(state: Execution) -> str | None:
    """Return the step to retry an execution from: the first that failed, if any."""
    return next((str(failure["step"]) for failure in state.failures), None)


def place(events: Sequence[Event], wanted: str) -> int:
    """Return the seq to fork after: a number, or just before a step's last run."""
    if wanted.isdecimal():
        seq = int(wanted)
        if not 1 <= seq <= len(events):
            raise InvalidInput(f"there is no event {seq}: the log goes from 1 to {len(events)}.")
        return seq
    runs = [
        event.seq
        for event in events
        if event.event_type == "step.scheduled" and event.entity_id == wanted and event.payload.get("number")
    ]
    if not runs:
        steps = list(dict.fromkeys(event.entity_id for event in events if event.event_type == "step.scheduled"))
        raise InvalidInput(
            f"the step `{wanted}` has not run in this execution; these have: {', '.join(steps) or 'none'}."
        )
    return _before(events, runs[-1])


def first_run(events: Sequence[Event], steps: Collection[str]) -> tuple[str, int] | None:
    """Return the first of these steps that ran, and the seq to fork after; or None."""
    for event in events:
        if event.event_type == "step.scheduled" and event.entity_id in steps and event.payload.get("number"):
            return event.entity_id, _before(events, event.seq)
    return None


def _before(events: Sequence[Event], scheduled: int) -> int:
    seq = scheduled - 1
    while seq > 1 and events[seq - 1].event_type == "policy.admit.evaluated":
        seq -= 1  # the gate decides again, on the changed values
    return seq


def shared(
    events: Sequence[Event],
    upto: int,
    execution_id: str,
    *,
    at: int = 0,
    playbook: str = "",
    pool: str = "",
    workload: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
) -> tuple[Event, ...]:
    """Copy the history up to an event under a new id.

    A playbook, a workload and tags replace those of the original.
    `at` is when the fork starts: its duration and time-outs count from there.
    """
    source = events[0].execution_id if events else ""
    stem = message_digest(f"fork:{execution_id}")
    copied: list[Event] = []
    for event in events:
        if event.seq > upto:
            break
        payload = dict(event.payload)
        if event.event_type == "playbook.execution.requested":
            payload |= {"forked_from": {"execution_id": source, "seq": upto}, "pool": pool}
            payload |= {"begun_at": at} if at else {}
            payload |= {"playbook": playbook} if playbook else {}
            payload |= {"tags": list(tags)} if tags else {}
            payload.pop("parent", None)
        if event.event_type == "playbook.request.evaluated" and workload:
            payload["workload"] = dict(payload.get("workload", {}))
            for key, value in workload.items():
                put(payload["workload"], key, value)
        is_execution = event.entity_id == source
        copied.append(
            msgspec.structs.replace(
                event,
                event_id=f"{stem}.{event.seq - 1}",
                execution_id=execution_id,
                entity_id=execution_id if is_execution else event.entity_id,
                payload=payload,
            )
        )
    return tuple(copied)


def fork(plan: Plan, events: Sequence[Event], execution_id: str, *, queued: str = "") -> Decision:
    """Return the commit that creates a fork: events, work in flight and timers.

    It asks for a place under the limits of its playbook, as a start does. With `queued`, the limit that keeps it waiting, its
    work and timers are withheld meanwhile. Raises LimitReached if it must not wait.
    """
    state = fold(execution_id, events)
    _refuse(plan, state, events)
    limits = limits_of(plan, state, state.started_at)
    if queued and limits is not None:
        check_waits(limits, queued)
    moved = _restarted_timers(state, events)
    fold(execution_id, moved, state)
    asked: tuple[Event, ...] = ()
    if limits is not None or state.slot is not None:
        name, about = "execution.admitted", limits or {}
        if limits is not None and queued:
            name, about = "execution.queued", queued_by(limits, queued)
        asked = (_event(state, state.seq + 1, name, "execution", execution_id, payload=about),)
        fold(execution_id, asked, state)
    whole = (*events, *moved, *asked)
    return Decision(
        execution_id,
        0,
        whole,
        () if state.is_withheld else tuple(_in_flight(plan, state)),
        timers=() if state.is_withheld else tuple((one.timer_id, one.at) for one in state.timers.values()),
        inbox=tuple((execution_id, message) for message in loop_results.unsaid(state)),
        projection=projection(state),
        letters=tuple(change for event in whole if (change := change_of(state.path, event)) is not None),
        slot=None if limits is None or queued else slot_of(limits, state.started_at),
    )


def _event(state: Execution, seq: int, name: str, entity_type: str, entity_id: str, **more: Any) -> Event:
    """Return an event of the fork itself, at its start."""
    return Event(
        event_id(f"fork:{state.execution_id}", seq),
        state.execution_id,
        seq,
        name,
        state.started_at,
        entity_type=entity_type,
        entity_id=entity_id,
        **more,
    )


def _restarted_timers(state: Execution, events: Sequence[Event]) -> tuple[Event, ...]:
    """Restart time-outs from the start of the fork; a `sleep` keeps its end."""
    moved: list[Event] = []
    for timer in state.timers.values():
        run = state.runs.get(timer.run_id or "")
        since = events[0].timestamp if run is None else run.started_at if timer.cause == "step" else run.scheduled_at
        if timer.cause == "wake" or since >= state.started_at:
            continue
        seq = state.seq + len(moved) + 1
        payload = {"cause": timer.cause, "at": state.started_at + timer.at - since}
        where = {"step_run_id": timer.run_id, "iteration": timer.index}
        moved.append(_event(state, seq, "timer.set", "timer", timer.timer_id, **where, payload=payload))
    return tuple(moved)


def _refuse(plan: Plan, state: Execution, events: Sequence[Event]) -> None:
    last = events[-1].event_type if events else ""
    if not events or last in _UNDECIDED or state.phase == "pending":
        raise InvalidInput("nothing has run up to that event; start the playbook anew with `noetl run`.")
    if state.phase != "running":
        raise InvalidInput(
            "at that event the execution is ending; fork from an earlier one (`noetl events ID` lists them)."
        )
    unsaid = {message.run_id for message in loop_results.unsaid(state)}
    for run in state.runs.values():
        if run.phase == "routing":
            raise InvalidInput(
                f"at that event the router of `{run.step}` is about to send tokens; fork from a later one."
            )
        if run.run_id not in unsaid and _is_between(plan, run):
            raise InvalidInput(f"at that event `{run.step}` is about to go on; fork from a later one.")
    if state.children:
        raise InvalidInput(
            "at that event a child execution is under way; fork from an event before it or after its end."
        )
    places = {token.step for token in state.tokens.values()} | {run.step for run in state.runs.values()}
    missing = sorted(places - set(plan.net.index))
    if missing:
        raise InvalidInput(
            f"the playbook has no step {', '.join(f'`{name}`' for name in missing)}, where the execution stands."
        )


def _is_between(plan: Plan, run: StepRun) -> bool:
    """Return whether a decision has more to do for a run, which nothing else does."""
    loop = run.loop
    if loop is None:
        return run.phase == "scheduled" and not plan.is_work(run.step)
    return bool(loop.woken) or not (loop.pieces or loop.suspended)


def _in_flight(plan: Plan, state: Execution) -> list[WorkItem]:
    items: list[WorkItem] = []
    for run in state.runs.values():
        if run.loop is not None:
            items += [item(plan, state, run, chunk) for chunk in run.loop.pieces]
        elif run.phase in ("scheduled", "started") and plan.is_work(run.step):
            items.append(item(plan, state, run))
    return items + [item(plan, state, run) for run in state.replays.values() if run.phase != "suspended"]
