"""Applies events to a state, in place; total, and decides nothing.

An unknown event changes only the sequence number, so a log of a newer minor version still folds. Tested in
tests/unit/engine/test_laws.py and test_decide.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from noetl.engine.state import evolve_dead_letters as letters
from noetl.engine.state import evolve_loops as loops
from noetl.engine.state import evolve_runs as runs
from noetl.engine.state import warnings
from noetl.engine.state.execution import Execution, Timer
from noetl.engine.state.lineage import child_finished, give_up, left_alone
from noetl.engine.state.writes import put
from noetl.model.events import SCHEMA_VERSION, Event
from noetl.model.upcast import upcast

Payload = Mapping[str, Any]
Handler = Callable[[Execution, Event, Payload], None]
_SELDOM = frozenset({"parent", "iter", "pool", "tags", "priority", "begun_at", "trace"})  # keys that few requests have
_ERRORS = (KeyError, TypeError, ValueError, AttributeError, IndexError)


def evolve(state: Execution, event: Event) -> Execution:
    """Apply one event, of this version or an older one, and return the state."""
    return fold(state.execution_id, (event,), state)


def apply(state: Execution, event: Event) -> None:
    """Apply one event of this version; raises if its payload is malformed."""
    state.seq = event.seq
    if event.timestamp > state.at:  # workers' records may be older than what others have done since
        state.at = event.timestamp
    handler = HANDLERS.get(event.event_type)
    if handler is not None:
        handler(state, event, event.payload)


def fold(execution_id: str, events: Iterable[Event], state: Execution | None = None) -> Execution:
    """Apply events to a state, or to a new one; skip events with a malformed payload."""
    state = state or Execution(execution_id)
    for event in events:
        try:
            apply(state, event if event.version >= SCHEMA_VERSION else upcast(event))
        except _ERRORS:  # not written by this code: skipped, like an event of an unknown type
            continue
    return state


def _requested(state: Execution, event: Event, payload: Payload) -> None:
    state.path = payload.get("path", "")
    state.playbook = payload.get("playbook", "")
    state.started_at = event.timestamp
    if not _SELDOM.isdisjoint(payload):
        state.parent = payload.get("parent")
        state.iter = payload.get("iter")
        state.pool = payload.get("pool", "")
        state.tags = tuple(payload.get("tags", ()))
        state.priority = payload.get("priority", 0)
        state.trace = payload.get("trace", "")
        state.started_at = payload.get("begun_at", event.timestamp)  # a fork starts later than its history


def _evaluated(state: Execution, _event: Event, payload: Payload) -> None:
    state.workload = dict(payload["workload"])


def _started(state: Execution, _event: Event, _payload: Payload) -> None:
    state.phase = "running"


def _queued(state: Execution, _event: Event, payload: Payload) -> None:
    state.phase, state.slot = "queued", payload


def _admitted(state: Execution, event: Event, payload: Payload) -> None:
    state.slot = payload or None
    if state.phase != "queued":
        return
    state.admitted_at = event.timestamp
    if state.has_begun:
        state.phase = "running"


def _patched(state: Execution, event: Event, payload: Payload) -> None:
    if "skipped" in payload:
        warnings.keep(state, event)
    for key, value in payload["writes"].items():
        put(state.ctx, key, value)


def _signalled(state: Execution, _event: Event, payload: Payload) -> None:
    put(state.ctx, "signals." + payload["name"].replace(".", "_"), payload.get("data"))
    state.signals.setdefault(payload["name"], []).append(payload.get("data"))


def _timer_set(state: Execution, event: Event, payload: Payload) -> None:
    state.timers[event.entity_id] = Timer(
        event.entity_id, payload["cause"], payload["at"], event.step_run_id, event.iteration
    )


def _timer_fired(state: Execution, event: Event, _payload: Payload) -> None:
    state.timers.pop(event.entity_id, None)


def _paused(state: Execution, _event: Event, payload: Payload) -> None:
    state.paused = True
    state.review = payload if "review" in payload else state.review


def _resumed(state: Execution, _event: Event, _payload: Payload) -> None:
    state.paused, state.review = False, None


def _cancelled(state: Execution, _event: Event, payload: Payload) -> None:
    state.phase = "ending"
    state.cut = payload["cause"]
    state.outcome = payload["outcome"]
    state.error = payload.get("error")
    state.undo = bool(payload.get("compensate"))
    state.paused, state.review = False, None
    if "abandoned" in payload:
        state.compensated = False
        for child_id in left_alone(state):
            del state.children[child_id]


def _workflow_finished(state: Execution, _event: Event, _payload: Payload) -> None:
    state.phase = "closing"


def _finished(state: Execution, event: Event, payload: Payload) -> None:
    state.phase = "ended"
    state.outcome = payload["status"]
    state.error = payload.get("error")
    state.compensated = payload.get("compensated", state.compensated)
    state.ended_at = event.timestamp
    give_up(state)


HANDLERS: dict[str, Handler] = {
    "playbook.execution.requested": _requested,
    "playbook.request.evaluated": _evaluated,
    "playbook.started": _started,
    "execution.queued": _queued,
    "execution.admitted": _admitted,
    "token.created": runs.token_created,
    "token.parked": runs.token_parked,
    "policy.admit.evaluated": runs.gated,
    "token.absorbed": runs.token_absorbed,
    "step.scheduled": runs.scheduled,
    "step.started": runs.started,
    **dict.fromkeys(runs.TASK_EVENTS, runs.task_recorded),
    "policy.task.evaluated": runs.judged,
    "step.suspended": runs.suspended,
    "step.woken": runs.woken,
    "child.finished": child_finished,
    "step.done": runs.ended,
    "step.failed": runs.ended,
    "next.evaluated": runs.routed,
    "ctx.patched": _patched,
    "signal.received": _signalled,
    "timer.set": _timer_set,
    "timer.fired": _timer_fired,
    "playbook.paused": _paused,
    "playbook.resumed": _resumed,
    "execution.cancelled": _cancelled,
    "workflow.finished": _workflow_finished,
    "playbook.finished": _finished,
    "dlq.replayed": letters.replayed,
    "dlq.returned": letters.returned,
    "dlq.discarded": letters.discarded,
    "message.poisoned": letters.poisoned,
    "message.released": letters.released,
    "message.settled": letters.settled,
    "loop.item.repaired": letters.item_repaired,
    "step.repaired": letters.step_repaired,
    "playbook.corrected": letters.corrected,
    "loop.started": loops.started,
    "loop.claim.scheduled": loops.claim_scheduled,
    "loop.claim.recorded": loops.claim_recorded,
    "loop.claim.done": loops.claim_done,
    "loop.iteration.scheduled": loops.scheduled,
    "loop.iteration.started": loops.piece_started,
    "loop.iteration.done": loops.item_ended,
    "loop.iteration.failed": loops.item_ended,
    "result.manifest.updated": loops.collected,
}
