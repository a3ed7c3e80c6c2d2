"""Decisions under construction: each event is applied as it is emitted.

So the decided state is the fold of the decided events by construction. Work, timers, messages to other executions and
dead letters are collected beside the events and committed with them. Tested in tests/unit/engine/handlers/test_decide.py and
test_recording.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from noetl.engine.decision.evaluations import Evaluations
from noetl.engine.decision.needs_load import NOTHING, Resolved
from noetl.engine.decision.scope import Scope, functions
from noetl.engine.decision.work import REPLAYED, WORK_EVENTS, work_for, work_id
from noetl.engine.plan.plan import Plan
from noetl.engine.state.dead_letters import change_of
from noetl.engine.state.evolve import apply
from noetl.engine.state.execution import Execution, StepRun, Suspended, Token
from noetl.model.commit import Commit, Slot
from noetl.model.events import EVENT_TYPES, Event
from noetl.model.ids import message_digest
from noetl.model.letters import LetterChange
from noetl.model.messages import AnyMessage, Cancel, Mend, Record, Report
from noetl.model.work import WorkItem

# Event type → its entity, and whether it puts work in the queue.
_KINDS = {name: (kind.entity, name in WORK_EVENTS) for name, kind in EVENT_TYPES.items()}
_LAST = 253_402_300_799_000  # the end of the year 9999: no timer is later, as no store has room for more
_NO_TIMERS: frozenset[str] = frozenset()
_Standing = tuple[str, bool, tuple[str, ...], int]  # status, whether it needs a signal, such signals, parked steps
_NO_ROW: _Standing = ("", False, (), 0)
_SIGNAL = re.compile(r"(?:ctx|vars)\.signals(?:\.(\w+)|\['([^']+)'\])")  # what a gate reads of a signal

Decision = Commit  # the server adds the sender of the message


class DecisionBuilder(msgspec.Struct, eq=False):
    """Collects the events of one decision, and everything that is committed with them."""

    plan: Plan
    state: Execution
    message: AnyMessage
    at: int
    resolved: Resolved  # stored results that were loaded or written for this decision, by address
    _stem: str  # prefix of its event ids
    _timers_before: frozenset[str]
    _standing_before: _Standing  # what changes in the row of an execution that goes on
    events: list[Event] = []
    work: dict[str, WorkItem] = {}
    finished: list[tuple[str, int]] = []
    held: list[tuple[str, int]] = []
    dropped: list[str] = []
    timers: dict[str, int] = {}
    inbox: list[tuple[str, AnyMessage]] = []
    letters: list[LetterChange] = []
    slot: Slot | None = None  # that the execution begins with
    gates_due: bool = False  # something changed that may open a gate
    cause: Mapping[str, Any] = NOTHING  # `event` as gates see it when they are evaluated again
    halted: bool = False  # a failure stopped the execution; `advance` ends the runs
    transitions: int = 0  # step-runs scheduled by this decision
    evaluations: Evaluations = msgspec.field(default_factory=Evaluations)
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
        """Append an event, apply it to the state, and queue the work that follows from it."""
        state, events = self.state, self.events
        entity, is_work = _KINDS[event_type]
        timestamp = self.at if at is None else at
        event = Event(
            f"{self._stem}{len(events)}",
            state.execution_id,
            state.seq + 1,
            event_type,
            max(state.at, timestamp),
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
        apply(state, event)
        events.append(event)
        if is_work:
            self._queue_work(event)
        return event

    def record(self, run: StepRun, records: Iterable[Record]) -> None:
        """Append the records of a worker; unknown event types are dropped."""
        state, events, run_id = self.state, self.events, run.run_id
        latest = max(state.at, self.at)  # a worker's clock may be ahead
        for record in records:
            event_type = record.event_type
            kind = _KINDS.get(event_type)
            if kind is None:
                continue
            entity, is_work = kind
            event = Event(
                f"{self._stem}{len(events)}",
                state.execution_id,
                state.seq + 1,
                event_type,
                min(latest, record.at),
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
                record.payload,
            )
            apply(state, event)
            events.append(event)
            if is_work:
                self._queue_work(event)

    def record_report(self, run: StepRun, report: Report) -> None:
        """Append the records of a report; the last one of progress has the snapshot."""
        records = report.records
        if report.pipeline is not None and report.ending is None and report.suspension is None:
            records = tuple([record for record in records if record.event_type in EVENT_TYPES])
            if records:
                payload = {**records[-1].payload, "pipeline": report.pipeline}
                records = (*records[:-1], replace(records[-1], payload=payload))
        self.record(run, records)

    def record_late(self, report: Report) -> None:
        """Record a report from a worker that had lost its lease."""
        payload: dict[str, Any] = {"worker": report.worker, "epoch": report.epoch}
        payload |= {"chunk": report.chunk} if report.chunk is not None else {}
        payload |= {"ending": report.ending.status} if report.ending is not None else {}
        self.emit("report.late", report.run_id.partition("#")[0], payload, step_run_id=report.run_id)

    def _queue_work(self, event: Event) -> None:
        item = work_for(self.plan, event, self.state)
        if item is not None:
            self.queue(item)

    @property
    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """Functions that templates may call in this decision."""
        if self._calls is None:
            self._calls = functions(self.state, self.at)
        return self._calls

    def scope(self, args: Mapping[str, Any], own: Mapping[str, Any] | None = None, **fixed: Any) -> Scope:
        """Return the names that templates see in this decision."""
        return Scope(self.state, args, own, self.resolved, self.evaluations, **fixed)

    def queue(self, item: WorkItem) -> None:
        """Put work in the queue, or replace its content there, unless it is withheld."""
        if not self.state.is_withheld:
            self.work[item.work_id] = item

    def finish(self, name: str, epoch: int) -> None:
        """Remove work from the queue, which must be leased with this epoch."""
        self.finished.append((name, epoch))

    def hold(self, name: str, epoch: int) -> None:
        """Require that work stays leased with this epoch."""
        self.held.append((name, epoch))

    def drop(self, name: str) -> None:
        """Remove work from the queue, leased or not."""
        self.dropped.append(name)

    def retry_gates(self, cause: Mapping[str, Any] | None = None) -> None:
        """Evaluate the gates of parked tokens again; they see `cause` as `event`."""
        self.gates_due = True
        self.cause = self.cause if cause is None else cause

    def take_gates_due(self) -> bool:
        """Return whether gates are to be evaluated again, and clear that."""
        due, self.gates_due = self.gates_due, False
        return due

    def halt(self, halted: bool = True) -> None:
        """Stop the execution after this routing, or clear that."""
        self.halted = halted

    def count_transition(self) -> None:
        self.transitions += 1

    def arm_timer(self, timer_id: str, at: int) -> None:
        """Commit a timer that the state has already."""
        self.timers[timer_id] = at

    def set_timer(
        self, timer_id: str, cause: str, at: int, run: StepRun | None = None, index: int | None = None
    ) -> None:
        at = min(at, _LAST)
        self.emit("timer.set", timer_id, {"cause": cause, "at": at}, run=run, iteration=index)
        self.arm_timer(timer_id, at)

    def send(self, execution_id: str, message: AnyMessage) -> None:
        """Send a message to an execution, in the same commit."""
        self.inbox.append((execution_id, message))

    def update_letter(self, event: Event) -> None:
        """Create or update the dead letter that an event names."""
        change = change_of(self.state.path, event)
        if change is not None:
            self.letters.append(change)

    def take_slot(self, slot: Slot) -> None:
        """Require a place under the limits of the execution."""
        self.slot = slot

    def message_id(self) -> str:
        """Return the id of the next message that this decision sends."""
        return f"{self.message.message_id}/{len(self.inbox)}"

    def drop_work(self, run: StepRun, *, undo: bool = False) -> None:
        """Drop a run's work, leased or not, and cancel its children; `undo`: compensate."""
        pieces: Iterable[str] = run.loop.pieces if run.loop is not None else ()
        pieces = pieces if run.of is None else (REPLAYED,)
        for name in [work_id(self.state, run), *(work_id(self.state, run, piece) for piece in pieces)]:
            self.work.pop(name, None)
            self.drop(name)
        for child, (owner, _) in self.state.children.items():
            if owner == run.run_id:
                reason = f"its parent {self.state.execution_id} ended the step"
                self.send(child, Cancel(self.message_id(), reason, compensate=undo))

    def build(self) -> Decision:
        """Return the finished decision."""
        state, events = self.state, self.events
        finished = {name for name, _ in self.finished} if self.held or self.dropped else ()
        timers = {} if state.is_withheld else state.timers
        standing = _standing(state) if events else _NO_ROW
        row = _row(state, standing) if events else {}
        has_same_row = self._standing_before == standing and state.phase != "ended"
        return Decision(
            state.execution_id,
            state.seq - len(events),
            tuple(events),
            tuple(self.work.values()),
            tuple(self.finished),
            tuple([held for held in self.held if held[0] not in finished]) if self.held else (),
            tuple([name for name in dict.fromkeys(self.dropped) if name not in finished]) if self.dropped else (),
            tuple([(timer, at) for timer, at in self.timers.items() if timer in timers]) if self.timers else (),
            tuple(sorted(self._timers_before - timers.keys())) if self._timers_before else (),
            tuple(self.inbox) if self.inbox else (),
            (),
            row,
            (),
            tuple(self.letters) if self.letters else (),
            has_same_row,
            self.slot,
        )


def begin(
    plan: Plan,
    state: Execution,
    message: AnyMessage,
    at: int,
    resolved: Resolved = NOTHING,
    evaluations: Evaluations | None = None,
) -> DecisionBuilder:
    """Begin a decision on a message."""
    timers = frozenset(state.timers) if state.timers else _NO_TIMERS
    standing = _standing(state) if state.seq and not isinstance(message, Mend) else _NO_ROW  # a repair writes the row
    return DecisionBuilder(
        plan,
        state,
        message,
        at,
        resolved,
        f"{message_digest(message.message_id)}.",
        timers,
        standing,
        evaluations=evaluations or Evaluations(),
    )


def projection(state: Execution) -> dict[str, Any]:
    """Return the row that lists and searches read of an execution."""
    return _row(state, _standing(state))


def _row(state: Execution, standing: _Standing) -> dict[str, Any]:
    status, waits, signals, parked = standing
    row: dict[str, Any] = {
        "status": status,
        "path": state.path,
        "playbook": state.playbook,
        "started_at": state.started_at,
        "needs_signal": waits,
    }
    if signals:
        row["signals"] = list(signals)
    if parked:
        row["parked"] = parked
    if state.parent is not None:
        row["parent"] = state.parent.get("execution_id")
    if state.tags:
        row["tags"] = list(state.tags)
    if state.slot is not None:
        row["slot"] = {**state.slot, "queued": state.phase == "queued"}
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
    """Return the status to show; `waiting` if all that is open waits for a signal."""
    return _standing(state)[0]


def is_blocked(state: Execution) -> bool:
    """Return whether only a message can move it: no time limit runs either."""
    return state.review is not None or (not state.timers and _standing(state)[1])


def _standing(state: Execution) -> _Standing:
    parked = len({token.step for token in state.tokens.values() if token.parked}) if state.tokens else 0
    return *_waits(state), parked


def _waits(state: Execution) -> tuple[str, bool, tuple[str, ...]]:
    status = state.status
    for run in state.runs.values():
        loop = run.loop
        if run.phase != "suspended" if loop is None else loop.pieces or not loop.suspended:
            return status, False, ()
    if state.phase in ("pending", "ended") or state.children:
        return status, False, ()
    held = [one for run in state.runs.values() for one in _suspensions(run)]
    if any(one.signal is None for one in held) or not (held or status in ("waiting", "paused")):
        return status, False, ()
    return "waiting" if status == "running" else status, True, _awaited(state, held)


def _suspensions(run: StepRun) -> list[Suspended]:
    if run.loop is not None:
        return list(run.loop.suspended.values())
    return [run.suspended] if run.suspended is not None else []


def _awaited(state: Execution, held: list[Suspended]) -> tuple[str, ...]:
    names = {one.signal: None for one in held if one.signal is not None}
    for token in state.tokens.values():
        if token.parked:
            names |= dict.fromkeys(signals_read(token))
    return tuple(names)


def signals_read(token: Token) -> list[str]:
    """Return the names of the signals that a parked token's gate reads."""
    found = (_SIGNAL.match(path) for path in token.gate or ())
    return list(dict.fromkeys(one[1] or one[2] for one in found if one is not None))
