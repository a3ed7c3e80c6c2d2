"""A decision while it is made: every event is applied to the state as it is emitted.

So the decided state is the fold of the decided events by construction. What else a commit holds (work, timers, messages
to others) is gathered beside them. Tested in tests/unit/engine/test_decide.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from noetl.engine.away import NOTHING, Resolved
from noetl.engine.dead_letters import change_of
from noetl.engine.evolve import apply
from noetl.engine.names import Scope, functions
from noetl.engine.plan import Plan
from noetl.engine.state import Execution, StepRun
from noetl.engine.work import REPLAYED, WORK_EVENTS, work_for, work_id
from noetl.model.events import EVENT_TYPES, Event
from noetl.model.ids import message_digest
from noetl.model.letters import LetterChange
from noetl.model.messages import AnyMessage, Cancel
from noetl.model.work import WorkItem

_ENTITIES = {name: kind.entity for name, kind in EVENT_TYPES.items()}


class Decision(msgspec.Struct, frozen=True):
    """What a message leads to; the fields are those of a commit."""

    events: tuple[Event, ...] = ()
    work: tuple[WorkItem, ...] = ()
    finished: tuple[tuple[str, int], ...] = ()
    held: tuple[tuple[str, int], ...] = ()
    dropped: tuple[str, ...] = ()
    timers: tuple[tuple[str, int], ...] = ()
    cleared: tuple[str, ...] = ()
    inbox: tuple[tuple[str, AnyMessage], ...] = ()
    projection: Mapping[str, Any] = {}
    letters: tuple[LetterChange, ...] = ()


class Deciding:
    """One decision under way."""

    def __init__(
        self, plan: Plan, state: Execution, message: AnyMessage, at: int, resolved: Resolved = NOTHING
    ) -> None:
        self.plan = plan
        self.resolved = resolved  # what was loaded or put away for this decision, by address
        self.state = state
        self.message = message
        self.at = at
        self.events: list[Event] = []
        self.work: dict[str, WorkItem] = {}
        self.finished: list[tuple[str, int]] = []
        self.held: list[tuple[str, int]] = []
        self.dropped: list[str] = []
        self.timers: dict[str, int] = {}
        self.inbox: list[tuple[str, AnyMessage]] = []
        self.letters: list[LetterChange] = []
        self.retry_gates = False  # something changed that may open a gate
        self.cause: Mapping[str, Any] = {}  # `event` for gates that are tried again
        self.halted = False  # a failure stopped the flow; what runs is to be ended
        self.transitions = 0
        self._timers_before = frozenset(state.timers)
        self._stem = message_digest(message.message_id)

    def emit(
        self,
        event_type: str,
        entity_id: str = "",
        payload: Mapping[str, Any] | None = None,
        *,
        run: StepRun | None = None,
        at: int | None = None,
        source: str = "server",
        parent_id: str | None = None,
        step_run_id: str | None = None,
        task_run_id: str | None = None,
        iteration: int | None = None,
        attempt: int | None = None,
        status: str | None = None,
        duration_ms: float | None = None,
    ) -> Event:
        """Record a fact, apply it, and put the work that follows from it in the queue."""
        state = self.state
        events = self.events
        event = Event(
            f"{self._stem}.{len(events)}",
            state.execution_id,
            state.seq + 1,
            event_type,
            self.at if at is None else at,
            source,
            _ENTITIES[event_type],
            entity_id,
            parent_id,
            step_run_id if run is None else run.run_id,
            task_run_id,
            iteration,
            attempt,
            status,
            duration_ms,
            payload or {},
        )
        apply(state, event)
        events.append(event)
        if event_type in WORK_EVENTS:
            for item in work_for(self.plan, event, state):
                self.work[item.work_id] = item
        return event

    @cached_property
    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """Give the functions that templates may call in this decision."""
        return functions(self.state, self.at)

    def scope(self, args: Mapping[str, Any], own: Mapping[str, Any] | None = None, **fixed: Any) -> Scope:
        """Give the names that templates see in this decision."""
        return Scope(self.state, args, own, self.resolved, **fixed)

    def set_timer(
        self, timer_id: str, cause: str, at: int, run: StepRun | None = None, index: int | None = None
    ) -> None:
        self.emit("timer.set", timer_id, {"cause": cause, "at": at}, run=run, iteration=index)
        self.timers[timer_id] = at

    def send(self, execution_id: str, message: AnyMessage) -> None:
        """Send a message to an execution; it is a row of the same commit."""
        self.inbox.append((execution_id, message))

    def about_letter(self, event: Event) -> None:
        """Let a commit change the dead letter that an event tells of."""
        change = change_of(self.state.path, event)
        if change is not None:
            self.letters.append(change)

    def message_id(self) -> str:
        """Name the next message that this decision sends."""
        return f"{self.message.message_id}/{len(self.inbox)}"

    def drop_work(self, run: StepRun, *, undo: bool = False) -> None:
        """Take a run's work out of the queue, whoever holds it, and cancel its children; `undo`: they undo what they did."""
        pieces: Iterable[str] = run.loop.pieces if run.loop is not None else ()
        pieces = pieces if run.of is None else (REPLAYED,)
        for found in [work_id(self.state, run), *(work_id(self.state, run, piece) for piece in pieces)]:
            self.work.pop(found, None)
            self.dropped.append(found)
        for child, (owner, _) in self.state.children.items():
            if owner == run.run_id:
                reason = f"its parent {self.state.execution_id} ended the step"
                self.send(child, Cancel(self.message_id(), reason, compensate=undo))

    def made(self) -> Decision:
        """Give the decision."""
        done = {found for found, _ in self.finished} if self.held or self.dropped else ()
        timers = self.state.timers
        return Decision(
            tuple(self.events),
            tuple(self.work.values()),
            tuple(self.finished),
            tuple([held for held in self.held if held[0] not in done]) if self.held else (),
            tuple([found for found in dict.fromkeys(self.dropped) if found not in done]) if self.dropped else (),
            tuple([(timer, at) for timer, at in self.timers.items() if timer in timers]) if self.timers else (),
            tuple(sorted(self._timers_before - timers.keys())) if self._timers_before else (),
            tuple(self.inbox),
            projection(self.state) if self.events else {},
            tuple(self.letters) if self.letters else (),
        )


def projection(state: Execution) -> dict[str, Any]:
    """Give the row that tells people of an execution."""
    waits = needs_signal(state)
    status = state.status
    row: dict[str, Any] = {
        "status": "waiting" if waits and status == "running" else status,
        "path": state.path,
        "playbook": state.playbook,
        "started_at": state.started_at,
        "needs_signal": waits,
    }
    if state.parent is not None:
        row["parent"] = state.parent.get("execution_id")
    if state.tags:
        row["tags"] = list(state.tags)
    if state.phase == "ended":
        row |= {
            "ended_at": state.ended_at,
            "result": state.result,
            "error": state.error,
            "steps": state.counts,
            "compensated": state.compensated,
        }
    return row


def status_of(state: Execution) -> str:
    """Give the status for people; one that only a signal can move is `waiting`, also where a run of it is under way."""
    return "waiting" if state.status == "running" and needs_signal(state) else state.status


def needs_signal(state: Execution) -> bool:
    """Tell whether only a signal or a patch from outside can move the execution."""
    if state.phase in ("pending", "ended") or state.timers or state.children:
        return False
    for run in state.runs.values():
        loop = run.loop
        waiting = run.phase == "suspended" if loop is None else bool(loop.suspended) and not loop.pieces
        if not waiting:
            return False
    return bool(state.runs) or state.status in ("waiting", "paused")
