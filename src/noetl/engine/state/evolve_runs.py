"""Applies the events of tokens and step-runs to a state.

Part of the fold: decides nothing. Tested in tests/unit/engine/test_laws.py and test_decide.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.engine.state import evolve_loops as loops
from noetl.engine.state import warnings
from noetl.engine.state.execution import Completed, Ended, Execution, Loop, Split, StepRun, Suspended, Token, see
from noetl.engine.state.lineage import add, forget, lineage_of, remove, settle
from noetl.model.events import Event

Payload = Mapping[str, Any]
_ENDS = {  # event type → status, counter
    "step.done": ("ok", "done"),
    "step.failed": ("error", "failed"),
}
# Events of a task: they change nothing, except that the last one of a report may carry the `pipeline` snapshot.
TASK_EVENTS = frozenset({
    "task.started", "task.done", "task.failed", "task.logged", "policy.task.evaluated",
    "task.attempt.started", "task.attempt.done", "task.attempt.failed",
})  # fmt: skip
# Keys that few scheduled runs have.
_SELDOM = frozenset({"role", "compensates", "attempt", "pool", "priority", "spent", "warnings"})


def _run_of(state: Execution, event: Event) -> StepRun | None:
    run_id = event.step_run_id or ""
    return state.runs.get(run_id) or state.replays.get(run_id)


def token_created(state: Execution, event: Event, payload: Payload) -> None:
    """Put a token at a step; remove a run whose router has sent all of its tokens."""
    token_id = event.entity_id
    args, lineage = payload.get("args"), payload.get("lineage")
    token = Token(
        token_id,
        payload["step"],
        dict(args) if args else {},
        lineage_of(lineage) if lineage else {},
        event.seq,
        0,
        None,
        payload.get("event"),
    )
    numbers = state.numbers
    numbers["token"] = numbers.get("token", 0) + 1
    state.tokens[token_id] = token
    if lineage:
        add(state, token_id, token.lineage)
    if "fork" in payload:
        _count_sent(state, payload["fork"])
    run = state.runs.get(event.step_run_id or "")
    if run is not None:
        run.sends -= 1
        if not run.sends:
            _leave(state, run)


def _count_sent(state: Execution, fork_id: str) -> None:
    fork = state.forks.get(fork_id)
    if fork is not None:
        fork.unsent -= 1
        settle(state, fork)


def token_parked(state: Execution, event: Event, _payload: Payload) -> None:
    """Mark a token as parked by a gate."""
    token = state.tokens.get(event.entity_id)
    if token is not None:
        token.parked = event.seq


def gated(state: Execution, event: Event, payload: Payload) -> None:
    """Keep the values that a gate read when it decided on tokens."""
    for token_id in payload.get("tokens", ()):
        if token_id in state.tokens:
            state.tokens[token_id].gate = payload.get("read")
    if "errors" in payload:
        warnings.keep(state, event)


def token_absorbed(state: Execution, event: Event, payload: Payload) -> None:
    """Remove a token that ended without a run."""
    _consume(state, event.entity_id)
    if payload.get("error") is not None:
        state.outcome = "failed"
        state.error = state.error or payload["error"]
        state.failures.append({"step": payload["step"], "error": payload["error"]})


def _consume(state: Execution, token_id: str) -> None:
    token = state.tokens.pop(token_id, None)
    if token is not None and token.lineage:
        remove(state, token_id, token.lineage)


def scheduled(state: Execution, event: Event, payload: Payload) -> None:
    """Create a run from tokens, or resume a suspended one."""
    run_id = event.step_run_id or ""
    suspended_run = state.runs.get(run_id) or state.replays.get(run_id)
    if suspended_run is not None:
        _reschedule(state, suspended_run, payload)
        return
    step, number = event.entity_id, payload["number"]
    args, lineage = payload.get("args"), payload.get("lineage")
    run = StepRun(
        run_id,
        step,
        number,
        dict(args) if args else {},
        lineage_of(lineage) if lineage else {},
        event.seq,
        event.timestamp,
    )
    if "sees" in payload:
        run.seen = see(state, payload["sees"])
    state.numbers[f"run:{step}"] = number
    state.runs[run_id] = run
    if lineage:
        add(state, run_id, run.lineage)
    if not _SELDOM.isdisjoint(payload):
        _set_rare(state, run, payload)
        warnings.keep(state, event)
    for token_id in payload.get("tokens", ()):
        _consume(state, token_id)


def _set_rare(state: Execution, run: StepRun, payload: Payload) -> None:
    run.role = payload.get("role", "step")
    run.compensates = payload.get("compensates")
    run.attempt = payload.get("attempt", 1)
    run.pool = payload.get("pool", "")
    run.priority = payload.get("priority", 0)
    for fork_id in payload.get("spent", ()):
        if fork_id in state.forks:
            state.forks[fork_id].spent[run.step] = run.lineage[fork_id]


def _reschedule(state: Execution, run: StepRun, payload: Payload) -> None:
    run.phase = "scheduled"
    run.resume = payload.get("resume")
    loops.consume_wake(state, run.suspended, payload)
    run.suspended = None


def started(state: Execution, event: Event, payload: Payload) -> None:
    """Mark a run as started by a worker."""
    run_id = event.step_run_id or ""
    run = state.runs.get(run_id) or state.replays.get(run_id)
    if run is not None:
        run.phase = "started"
        if "epoch" in payload:
            run.epoch = payload["epoch"]
        if not run.started_at:
            run.started_at = event.timestamp


def task_recorded(state: Execution, event: Event, payload: Payload) -> None:
    """Keep the snapshot of a run's pipeline."""
    if "pipeline" in payload:
        run = _run_of(state, event)
        if run is not None:
            run.resume = {"pipeline": payload["pipeline"]}


def judged(state: Execution, event: Event, payload: Payload) -> None:
    """Keep what the policy of a task could not evaluate."""
    task_recorded(state, event, payload)
    warnings.keep(state, event)


def suspended(state: Execution, event: Event, payload: Payload) -> None:
    """Mark a run, or an item of its loop, as suspended."""
    run = _run_of(state, event)
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


def woken(state: Execution, event: Event, payload: Payload) -> None:
    """Take what woke a run, or an item of its loop; its end follows."""
    run = _run_of(state, event)
    if run is None:
        return
    if event.iteration is not None and run.loop is not None:
        loops.consume_wake(state, run.loop.suspended.pop(event.iteration, None), payload)
    else:
        loops.consume_wake(state, run.suspended, payload)
        run.phase, run.suspended = "routing", None  # it is over, so no fork may begin it anew


def ended(state: Execution, event: Event, payload: Payload) -> None:
    """Record the end of a run; it stays until its router has decided."""
    run = state.runs.get(event.step_run_id or "")
    if run is None:
        return
    step, role = run.step, run.role
    status, counted = ("skipped", "skipped") if event.status == "skipped" else _ENDS[event.event_type]
    result = payload.get("result")
    if run.loop is not None:
        result = _end_loop(state, run, run.loop, status, payload)
    if role == "compensation":
        _end_compensation(state, run, status, payload)
    else:
        state.ended[step] = Ended(run.run_id, status, result, payload.get("error"), event.seq)
        if status == "ok":
            state.result = result
    _count(state, step)[counted] += 1
    if state.timers or state.children:
        forget(state, run.run_id, keep_children=bool(payload.get("undo")))
    if run.seen is not None or run.resume is not None or run.suspended is not None:
        run.suspended = run.resume = run.seen = None
    if role != "step":
        if role == "final":
            state.final_ended = True
            if status == "error" and state.cut is None:  # else it ended with its execution
                state.outcome = "failed"
            state.error = state.error or payload.get("error")
        _leave(state, run)
        return
    if "compensate" in payload and status == "ok":
        state.completed.append(Completed(run.run_id, step, payload["compensate"], result))
    if payload.get("cancelled"):
        _leave(state, run)
    else:
        run.phase = "routing"  # until its router has decided, its lineage counts as live


def _count(state: Execution, step: str) -> dict[str, int]:
    counts = state.counts.get(step)
    if counts is None:
        counts = state.counts[step] = {"done": 0, "failed": 0, "skipped": 0}
    return counts


def _end_loop(state: Execution, run: StepRun, loop: Loop, status: str, payload: Payload) -> Any:
    run.loop = None
    if status == "ok" and loop.failed:
        state.partial[run.run_id] = loop.failed
        state.outcome = state.outcome or "partial"
    if status == "ok" and "result" not in payload:
        return {"results": loop.listed(), "stats": loop.stats()}
    return payload.get("result")


def _end_compensation(state: Execution, run: StepRun, status: str, payload: Payload) -> None:
    for completed in state.completed:
        if completed.run_id != run.compensates:
            continue
        completed.attempts += 1
        if status == "ok" or payload.get("dead"):
            completed.state = "done" if status == "ok" else "failed"
            state.compensated = status == "ok" and state.compensated is not False


def routed(state: Execution, event: Event, payload: Payload) -> None:
    """Apply a router's decision; remove a run that sends no token."""
    run = state.runs.get(event.step_run_id or "")
    if run is None:
        return
    run.sends = sends = len(payload.get("taken", ()))
    if "fork" in payload:
        fork = payload["fork"]
        state.numbers["fork"] = state.numbers.get("fork", 0) + 1
        state.forks[fork] = Split(fork, run.step, sends, sends)
    if "action" in payload or "broken" in payload:
        _apply_failure(state, run, payload)
    for arc in payload.get("arcs", ()):
        if "error" in arc:
            warnings.keep(state, event)
            break
    if not sends:
        _leave(state, run)


def _apply_failure(state: Execution, run: StepRun, payload: Payload) -> None:
    """Apply a failure that no arc takes, or of the router itself."""
    action, error = payload.get("action"), payload.get("error")
    if payload.get("broken") and run.step in state.ended:
        ended = state.ended[run.step]
        state.ended[run.step] = Ended(ended.run_id, "error", ended.result, error, ended.seq)
        state.counts[run.step]["done"] -= 1
        state.counts[run.step]["failed"] += 1
    if action in ("halt", "continue"):
        state.failures.append({"step": run.step, "error": error})
        state.outcome = "failed"
        state.error = state.error or error
    if action == "halt":
        state.phase = "ending"


def _leave(state: Execution, run: StepRun) -> None:
    state.runs.pop(run.run_id, None)
    if run.lineage:
        remove(state, run.run_id, run.lineage)
