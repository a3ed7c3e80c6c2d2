"""Applies events to a state: total, owns its argument, decides nothing.

An event that is not known here changes nothing but the sequence number, so a log of a newer minor version still folds.
What belongs to loops is in `evolve_loops`. Tested in tests/unit/engine/test_laws.py and test_decide.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from noetl.engine import evolve_letters as letters
from noetl.engine import evolve_loops as loops
from noetl.engine.carriers import add, child_finished, forget, give_up, left_alone, lineage_of, remove, settle
from noetl.engine.state import Completed, Ended, Execution, Fork, StepRun, Suspended, Timer, Token, see
from noetl.engine.writes import put
from noetl.model.events import SCHEMA_VERSION, Event
from noetl.model.upcast import upcast

Payload = Mapping[str, Any]
Handler = Callable[[Execution, Event, Payload], None]
_ENDS = {"step.done": ("ok", "done"), "step.failed": ("error", "failed")}  # status, and what it counts as
_ERRORS = (KeyError, TypeError, ValueError, AttributeError, IndexError)


def evolve(state: Execution, event: Event) -> Execution:
    """Apply one event, of this version or an older one, and give the state back."""
    try:
        apply(state, event if event.version >= SCHEMA_VERSION else upcast(event))
    except _ERRORS:  # a payload that nobody here wrote: folding goes on, as with an event of an unknown name
        return state
    return state


def apply(state: Execution, event: Event) -> None:
    """Apply one event that was just decided; raises where its payload is not what is written here."""
    state.seq = event.seq
    state.at = event.timestamp
    handler = _HANDLERS.get(event.event_type)
    if handler is not None:
        handler(state, event, event.payload)


def fold(execution_id: str, events: Iterable[Event], state: Execution | None = None) -> Execution:
    """Apply many events, from nothing or onto a state."""
    state = state or Execution(execution_id)
    for event in events:
        evolve(state, event)
    return state


def _requested(state: Execution, event: Event, payload: Payload) -> None:
    state.path = payload.get("path", "")
    state.playbook = payload.get("playbook", "")
    state.parent = payload.get("parent")
    state.iter = payload.get("iter")
    state.pool = payload.get("pool", "")
    state.tags = tuple(payload.get("tags", ()))
    state.priority = payload.get("priority", 0)
    state.started_at = payload.get("begun_at", event.timestamp)  # a fork begins later than its history


def _evaluated(state: Execution, _event: Event, payload: Payload) -> None:
    state.workload = dict(payload["workload"])


def _started(state: Execution, _event: Event, _payload: Payload) -> None:
    state.phase = "running"


def _token_created(state: Execution, event: Event, payload: Payload) -> None:
    token = Token(
        event.entity_id,
        payload["step"],
        dict(payload.get("args", {})),
        lineage_of(payload.get("lineage", {})),
        event.seq,
        event=payload.get("event"),
    )
    state.numbers["token"] = state.numbers.get("token", 0) + 1
    state.tokens[token.token_id] = token
    add(state, token.token_id, token.lineage)
    fork = state.forks.get(payload.get("fork", ""))
    if fork is not None:
        fork.unsent -= 1
        settle(state, fork)
    run = state.runs.get(str(event.step_run_id))
    if run is not None:
        run.sends -= 1
        if not run.sends:
            _leave(state, run)


def _token_parked(state: Execution, event: Event, _payload: Payload) -> None:
    token = state.tokens.get(event.entity_id)
    if token is not None:
        token.parked = event.seq


def _gated(state: Execution, _event: Event, payload: Payload) -> None:
    for token_id in payload.get("tokens", ()):
        if token_id in state.tokens:
            state.tokens[token_id].gate = payload.get("read")


def _token_absorbed(state: Execution, event: Event, payload: Payload) -> None:
    _consume(state, event.entity_id)
    if payload.get("error") is not None:
        state.outcome = "failed"
        state.error = state.error or payload["error"]
        state.failures.append({"step": payload["step"], "error": payload["error"]})


def _consume(state: Execution, token_id: str) -> None:
    token = state.tokens.pop(token_id, None)
    if token is not None:
        remove(state, token_id, token.lineage)


def _scheduled(state: Execution, event: Event, payload: Payload) -> None:
    run_id = str(event.step_run_id)
    known = state.runs.get(run_id) or state.replays.get(run_id)
    if known is not None:
        _again(state, known, payload)
        return
    step = event.entity_id
    state.numbers[f"run:{step}"] = payload["number"]
    run = StepRun(
        run_id,
        step,
        payload["number"],
        dict(payload.get("args", {})),
        lineage_of(payload.get("lineage", {})),
        event.seq,
        event.timestamp,
        role=payload.get("role", "step"),
        compensates=payload.get("compensates"),
        attempt=payload.get("attempt", 1),
        seen=see(state, payload["sees"]) if "sees" in payload else None,
        pool=payload.get("pool", ""),
        priority=payload.get("priority", 0),
    )
    state.runs[run_id] = run
    add(state, run_id, run.lineage)
    for fork_id in payload.get("spent", ()):
        if fork_id in state.forks:
            state.forks[fork_id].spent[step] = run.lineage[fork_id]
    for token_id in payload.get("tokens", ()):
        _consume(state, token_id)


def _again(state: Execution, run: StepRun, payload: Payload) -> None:
    """Schedule a suspended run again: the same run goes on."""
    run.phase = "scheduled"
    run.resume = payload.get("resume")
    _woken(state, run.suspended, payload)
    run.suspended = None


def _woken(state: Execution, suspended: Suspended | None, payload: Payload) -> None:
    name = payload.get("signal")
    if name is not None and state.signals.get(name):
        state.signals[name].pop(0)
        if not state.signals[name]:
            del state.signals[name]
    state.timers.pop(payload.get("timer", ""), None)
    if suspended is not None and suspended.child_id is not None:
        state.children.pop(suspended.child_id, None)


def _run_started(state: Execution, event: Event, payload: Payload) -> None:
    run_id = str(event.step_run_id)
    run = state.runs.get(run_id) or state.replays.get(run_id)
    if run is not None:
        run.phase = "started"
        run.epoch = payload.get("epoch", run.epoch)
        run.started_at = run.started_at or event.timestamp


def _task_recorded(state: Execution, event: Event, payload: Payload) -> None:
    if "pipeline" in payload:
        run = _under_way(state, event)
        if run is not None:
            run.resume = {"pipeline": payload["pipeline"]}


def _under_way(state: Execution, event: Event) -> StepRun | None:
    run_id = str(event.step_run_id)
    return state.runs.get(run_id) or state.replays.get(run_id)


def _suspended(state: Execution, event: Event, payload: Payload) -> None:
    run = _under_way(state, event)
    if run is None:
        return
    suspended = Suspended(
        payload["cause"],
        payload["pipeline"],
        event.seq,
        payload.get("until"),
        payload.get("signal"),
        payload.get("child_id"),
    )
    if suspended.child_id is not None:
        state.children[suspended.child_id] = (run.run_id, event.iteration)
        state.numbers["child"] = state.numbers.get("child", 0) + 1
    if event.iteration is not None and run.loop is not None:
        loops.suspend(run.loop, str(payload.get("chunk")), event.iteration, suspended)
    else:
        run.phase = "suspended"
        run.suspended = suspended


def _run_ended(state: Execution, event: Event, payload: Payload) -> None:
    run = state.runs.get(str(event.step_run_id))
    if run is None:
        return
    status, counted = _ENDS.get(event.event_type, ("skipped", "skipped"))
    result = payload.get("result")
    if run.loop is not None and "result" not in payload and status == "ok":
        result = {"results": run.loop.listed(), "stats": run.loop.stats()}
    if run.role == "compensation":
        _compensated(state, run, status, payload)
    else:
        state.ended[run.step] = Ended(run.run_id, status, result, payload.get("error"), event.seq)
    counts = state.counts.get(run.step)
    if counts is None:
        counts = state.counts[run.step] = {"done": 0, "failed": 0, "skipped": 0}
    counts[counted] += 1
    if status == "ok" and run.role != "compensation":
        state.result = result
    if status == "ok" and run.role == "step" and "compensate" in payload:
        state.completed.append(Completed(run.run_id, run.step, payload["compensate"], result))
    if run.role == "final":
        state.final_ended = True
        state.outcome = "failed" if status == "error" else state.outcome
        state.error = state.error or payload.get("error")
    if run.loop is not None and run.loop.failed and status == "ok":
        state.partial[run.run_id] = run.loop.failed
        state.outcome = state.outcome or "partial"
    if state.timers or state.children:
        forget(state, run.run_id, keep_children=bool(payload.get("undo")))
    run.loop = run.suspended = run.resume = run.seen = None
    if run.role != "step" or payload.get("cancelled"):
        _leave(state, run)
    else:
        run.phase = "routing"  # it stays until its router has spoken, so that its lineage counts as live


def _compensated(state: Execution, run: StepRun, status: str, payload: Payload) -> None:
    for completed in state.completed:
        if completed.run_id != run.compensates:
            continue
        completed.attempts += 1
        if status == "ok" or payload.get("dead"):
            completed.state = "done" if status == "ok" else "failed"
            state.compensated = status == "ok" and state.compensated is not False


def _routed(state: Execution, event: Event, payload: Payload) -> None:
    run = state.runs.get(str(event.step_run_id))
    if run is None:
        return
    error = payload.get("error")
    if payload.get("broken") and run.step in state.ended:  # the router itself failed: the step counts as failed
        ended = state.ended[run.step]
        state.ended[run.step] = Ended(ended.run_id, "error", ended.result, error, ended.seq)
        state.counts[run.step]["done"] -= 1
        state.counts[run.step]["failed"] += 1
    run.sends = len(payload.get("taken", ()))
    fork = payload.get("fork")
    if fork is not None:
        state.numbers["fork"] = state.numbers.get("fork", 0) + 1
        state.forks[fork] = Fork(fork, run.step, run.sends, run.sends)
    if payload.get("action") in ("halt", "continue"):
        state.failures.append({"step": run.step, "error": error})
        state.outcome = "failed"
        state.error = state.error or error
    if payload.get("action") == "halt":
        state.phase = "ending"
    if not run.sends:
        _leave(state, run)


def _leave(state: Execution, run: StepRun) -> None:
    state.runs.pop(run.run_id, None)
    remove(state, run.run_id, run.lineage)


def _patched(state: Execution, _event: Event, payload: Payload) -> None:
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


def _paused(state: Execution, _event: Event, _payload: Payload) -> None:
    state.paused = True


def _resumed(state: Execution, _event: Event, _payload: Payload) -> None:
    state.paused = False


def _cancelled(state: Execution, _event: Event, payload: Payload) -> None:
    state.phase = "ending"
    state.cut = payload["cause"]
    state.outcome = payload["outcome"]
    state.error = payload.get("error")
    state.undo = bool(payload.get("compensate"))
    state.paused = False
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


_HANDLERS: dict[str, Handler] = {
    "playbook.execution.requested": _requested,
    "playbook.request.evaluated": _evaluated,
    "playbook.started": _started,
    "token.created": _token_created,
    "token.parked": _token_parked,
    "policy.admit.evaluated": _gated,
    "token.absorbed": _token_absorbed,
    "step.scheduled": _scheduled,
    "step.started": _run_started,
    **dict.fromkeys(
        (
            *("task.started", "task.done", "task.failed", "task.logged", "policy.task.evaluated"),
            *("task.attempt.started", "task.attempt.done", "task.attempt.failed"),
        ),
        _task_recorded,  # the last record of a report says where the pipeline stands
    ),
    "step.suspended": _suspended,
    "child.finished": child_finished,
    "step.done": _run_ended,
    "step.failed": _run_ended,
    "step.skipped": _run_ended,
    "next.evaluated": _routed,
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
