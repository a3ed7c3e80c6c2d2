"""A decision while it is made: every event is applied to the state as it is emitted.

So the decided state is the fold of the decided events by construction. What else a commit holds (work, timers, messages
to others) is gathered beside them. Tested in tests/unit/engine/test_decide.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from noetl.engine.away import NOTHING, Resolved
from noetl.engine.dead_letters import change_of
from noetl.engine.evolve import HANDLERS, apply
from noetl.engine.evolve_runs import TASK_EVENTS
from noetl.engine.names import Scope, functions
from noetl.engine.plan import Plan
from noetl.engine.state import Execution, StepRun
from noetl.engine.work import REPLAYED, WORK_EVENTS, work_for, work_id
from noetl.model.commit import Commit
from noetl.model.events import EVENT_TYPES, Event
from noetl.model.ids import message_digest
from noetl.model.letters import LetterChange
from noetl.model.messages import AnyMessage, Cancel, Record
from noetl.model.work import WorkItem

# Of every event: what it is about, how it is applied, and whether work may follow from it.
_KINDS = {name: (kind.entity, HANDLERS.get(name), name in WORK_EVENTS) for name, kind in EVENT_TYPES.items()}
# Of every event that a worker may record: what it is about, and whether it changes the state whatever it says.
_RECORDED = {name: (kind.entity, name not in TASK_EVENTS) for name, kind in EVENT_TYPES.items()}
_NO_TIMERS: frozenset[str] = frozenset()


Decision = Commit  # what a message leads to; who sent it is not known here


class Deciding(msgspec.Struct, eq=False):
    """One decision under way."""

    plan: Plan
    state: Execution
    message: AnyMessage
    at: int
    resolved: Resolved  # what was loaded or put away for this decision, by address
    _stem: str  # what the ids of its events begin with
    _timers_before: frozenset[str]
    events: list[Event] = []
    work: dict[str, WorkItem] = {}
    finished: list[tuple[str, int]] = []
    held: list[tuple[str, int]] = []
    dropped: list[str] = []
    timers: dict[str, int] = {}
    inbox: list[tuple[str, AnyMessage]] = []
    letters: list[LetterChange] = []
    retry_gates: bool = False  # something changed that may open a gate
    cause: Mapping[str, Any] = NOTHING  # `event` for gates that are tried again
    halted: bool = False  # a failure stopped the flow; what runs is to be ended
    transitions: int = 0
    _calls: Mapping[str, Callable[..., Any]] | None = None

    def emit(
        self,
        event_type: str,
        entity_id: str = "",
        payload: Mapping[str, Any] = NOTHING,
        run: StepRun | None = None,
        at: int | None = None,
        status: str | None = None,
        duration_ms: float | None = None,
        iteration: int | None = None,
        step_run_id: str | None = None,
    ) -> Event:
        """Record a fact, apply it, and put the work that follows from it in the queue."""
        state, events = self.state, self.events
        entity, handler, is_work = _KINDS[event_type]
        state.seq = seq = state.seq + 1
        state.at = at = self.at if at is None else at
        event = Event(
            f"{self._stem}{len(events)}",
            state.execution_id,
            seq,
            event_type,
            at,
            "server",
            entity,
            entity_id,
            None,
            step_run_id if run is None else run.run_id,
            None,
            iteration,
            None,
            status,
            duration_ms,
            payload,
        )
        if handler is not None:
            handler(state, event, payload)
        events.append(event)
        if is_work:
            self._queue(event)
        return event

    def record(self, run: StepRun, records: Iterable[Record]) -> None:
        """Record what a worker saw; names that are not known here are left out."""
        state, events = self.state, self.events
        before = len(events)
        for event in add_records(events, records, self._stem, state.execution_id, state.seq, run.run_id):
            apply(state, event)
            if event.event_type in WORK_EVENTS:
                self._queue(event)
        if len(events) > before:
            state.seq, state.at = events[-1].seq, events[-1].timestamp

    def _queue(self, event: Event) -> None:
        for item in work_for(self.plan, event, self.state):
            self.work[item.work_id] = item

    @property
    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """Give the functions that templates may call in this decision."""
        if self._calls is None:
            self._calls = functions(self.state, self.at)
        return self._calls

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
        state, events = self.state, self.events
        done = {found for found, _ in self.finished} if self.held or self.dropped else ()
        timers = state.timers
        return Decision(
            state.execution_id,
            state.seq - len(events),
            tuple(events),
            tuple(self.work.values()),
            tuple(self.finished),
            tuple([held for held in self.held if held[0] not in done]) if self.held else (),
            tuple([found for found in dict.fromkeys(self.dropped) if found not in done]) if self.dropped else (),
            tuple([(timer, at) for timer, at in self.timers.items() if timer in timers]) if self.timers else (),
            tuple(sorted(self._timers_before - timers.keys())) if self._timers_before else (),
            tuple(self.inbox) if self.inbox else (),
            (),
            projection(state) if events else {},
            (),
            tuple(self.letters) if self.letters else (),
        )


def add_records(
    events: list[Event], records: Iterable[Record], stem: str, execution_id: str, seq: int, run_id: str
) -> tuple[Event, ...]:
    """Add what a worker saw to events, of which the last has this `seq`; gives those of them that change a state."""
    changing: tuple[Event, ...] = ()
    for record in records:
        event_type, payload = record.event_type, record.payload
        known = _RECORDED.get(event_type)
        if known is None:
            continue
        entity, changes = known
        seq += 1
        event = Event(
            f"{stem}{len(events)}",
            execution_id,
            seq,
            event_type,
            record.at,
            "worker",
            entity,
            record.task,
            run_id,
            run_id,
            record.task_run_id,
            record.iteration,
            record.attempt,
            record.status,
            record.duration_ms,
            payload,
        )
        events.append(event)
        if changes or "pipeline" in payload:
            changing = (*changing, event)
    return changing


def begin(plan: Plan, state: Execution, message: AnyMessage, at: int, resolved: Resolved = NOTHING) -> Deciding:
    """Begin a decision."""
    timers = frozenset(state.timers) if state.timers else _NO_TIMERS
    return Deciding(plan, state, message, at, resolved, f"{message_digest(message.message_id)}.", timers)


def projection(state: Execution) -> dict[str, Any]:
    """Give the row that tells people of an execution."""
    status, waits = _standing(state)
    return row(state, status, waits)


def row(state: Execution, status: str, waits: bool) -> dict[str, Any]:
    """Give the row of an execution of which it is known how it stands."""
    told: dict[str, Any] = {
        "status": status,
        "path": state.path,
        "playbook": state.playbook,
        "started_at": state.started_at,
        "needs_signal": waits,
    }
    if state.parent is not None:
        told["parent"] = state.parent.get("execution_id")
    if state.tags:
        told["tags"] = list(state.tags)
    if state.phase == "ended":
        told |= {
            "ended_at": state.ended_at,
            "result": state.result,
            "error": state.error,
            "steps": state.counts,
            "compensated": state.compensated,
        }
    return told


def status_of(state: Execution) -> str:
    """Give the status for people; one that only a signal can move is `waiting`, also where a run of it is under way."""
    return _standing(state)[0]


def needs_signal(state: Execution) -> bool:
    """Tell whether only a signal or a patch from outside can move the execution."""
    return _standing(state)[1]


def _standing(state: Execution) -> tuple[str, bool]:
    """Give the status for people, and whether only a signal or a patch from outside can move the execution."""
    status = state.status
    if state.phase in ("pending", "ended") or state.timers or state.children:
        return status, False
    for run in state.runs.values():
        loop = run.loop
        waiting = run.phase == "suspended" if loop is None else bool(loop.suspended) and not loop.pieces
        if not waiting:
            return status, False
    waits = bool(state.runs) or status in ("waiting", "paused")
    return "waiting" if waits and status == "running" else status, waits
