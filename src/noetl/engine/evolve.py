"""Applies events to a state: total, owns its argument, decides nothing.

An event that is not known here changes nothing but the sequence number, so a log of a newer minor version still folds.
Tested in tests/unit/engine/test_evolve.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from noetl.engine.state import Ended, Execution, Fork, Lineage, StepRun, Timer, Token
from noetl.model.events import Event

Payload = Mapping[str, Any]
Handler = Callable[[Execution, Event, Payload], None]


def evolve(state: Execution, event: Event) -> Execution:
    """Apply one event and give the state back."""
    state.seq = event.seq
    state.at = event.timestamp
    handler = _HANDLERS.get(event.event_type)
    if handler is not None:
        handler(state, event, event.payload)
    return state


def fold(execution_id: str, events: Iterable[Event], state: Execution | None = None) -> Execution:
    """Apply many events, from nothing or onto a state."""
    state = state or Execution(execution_id)
    for event in events:
        evolve(state, event)
    return state


def _lineage(data: Mapping[str, Iterable[int]]) -> Lineage:
    return {fork: frozenset(branches) for fork, branches in data.items()}


def _requested(state: Execution, _event: Event, payload: Payload) -> None:
    state.parent = payload.get("parent")
    state.iter = payload.get("iter")


def _evaluated(state: Execution, _event: Event, payload: Payload) -> None:
    state.workload = dict(payload["workload"])


def _started(state: Execution, _event: Event, _payload: Payload) -> None:
    state.phase = "running"


def _token_created(state: Execution, event: Event, payload: Payload) -> None:
    token_id = event.entity_id
    state.numbers["token"] = state.numbers.get("token", 0) + 1
    state.tokens[token_id] = Token(
        token_id, payload["step"], dict(payload.get("args", {})), _lineage(payload.get("lineage", {})), event.seq
    )
    run = state.runs.get(str(event.step_run_id))
    if run is not None:
        run.sends -= 1
        if not run.sends:
            _leave(state, run.run_id)


def _token_parked(state: Execution, event: Event, _payload: Payload) -> None:
    token = state.tokens.get(event.entity_id)
    if token is not None:
        token.parked = True


def _token_absorbed(state: Execution, event: Event, _payload: Payload) -> None:
    state.tokens.pop(event.entity_id, None)
    _drop_lonely_forks(state)


def _scheduled(state: Execution, event: Event, payload: Payload) -> None:
    run_id = str(event.step_run_id)
    known = state.runs.get(run_id)
    if known is not None:  # the same run again, after a suspension
        known.phase = "scheduled"
        known.suspension = None
        return
    step = event.entity_id
    state.numbers[f"run:{step}"] = payload["number"]
    for token_id in payload.get("tokens", ()):
        state.tokens.pop(token_id, None)
    state.runs[run_id] = StepRun(
        run_id,
        step,
        payload["number"],
        dict(payload.get("args", {})),
        _lineage(payload.get("lineage", {})),
        event.seq,
        event.timestamp,
        role=payload.get("role", "step"),
        compensates=payload.get("compensates"),
    )
    for fork_id, step_name in payload.get("spent", {}).items():
        fork = state.forks.get(fork_id)
        if fork is not None:
            fork.spent[step_name] = state.runs[run_id].lineage.get(fork_id, frozenset())
    _drop_lonely_forks(state)


def _run_started(state: Execution, event: Event, payload: Payload) -> None:
    run = state.runs.get(str(event.step_run_id))
    if run is not None:
        run.phase = "started"
        run.epoch = payload.get("epoch", run.epoch)


def _suspended(state: Execution, event: Event, payload: Payload) -> None:
    run = state.runs.get(str(event.step_run_id))
    if run is not None:
        run.phase = "suspended"
        run.suspension = payload


def _run_ended(state: Execution, event: Event, payload: Payload) -> None:
    run = state.runs.get(str(event.step_run_id))
    if run is None:
        return
    run.phase = "routing"  # it stays until its router has spoken, so that its lineage counts as live
    status = "ok" if event.event_type == "step.done" else "error"
    ended = Ended(run.run_id, status, payload.get("result"), payload.get("error"), event.seq)
    state.ended[run.step] = ended
    if run.role == "step" and status == "ok":
        state.completed.append((run.step, run.run_id))
    if run.role in ("step", "final"):
        state.result = ended.result if status == "ok" else state.result


def _routed(state: Execution, event: Event, payload: Payload) -> None:
    run = state.runs.get(str(event.step_run_id))
    if run is None:
        return
    run.sends = len(payload.get("taken", ()))
    fork = payload.get("fork")
    if fork is not None:
        state.numbers["fork"] = state.numbers.get("fork", 0) + 1
        state.forks[fork] = Fork(fork, run.step, run.sends)
    action = payload.get("action")
    if action in ("halt", "continue"):
        state.failures.append({"step": run.step, "error": payload.get("error")})
        state.outcome = "failed"
    if action == "halt":
        state.phase = "ending"
        for other in state.runs.values():
            other.phase = "cancelling"
    if not run.sends:
        _leave(state, run.run_id)


def _leave(state: Execution, run_id: str) -> None:
    """Take a run out once its router has sent every token; until then its lineage counts as live."""
    del state.runs[run_id]
    _drop_lonely_forks(state)


def _patched(state: Execution, _event: Event, payload: Payload) -> None:
    for key, value in payload["writes"].items():
        put(state.ctx, key, value)


def put(ctx: dict[str, Any], key: str, value: Any) -> None:
    """Write a dotted key; a map on the way that is missing is made."""
    *way, last = key.split(".")
    target = ctx
    for part in way:
        below = target.get(part)
        target[part] = below = dict(below) if isinstance(below, dict) else {}
        target = below
    target[last] = value


def _signalled(state: Execution, _event: Event, payload: Payload) -> None:
    signals = dict(state.ctx.get("signals") or {})
    signals[payload["name"]] = payload.get("data")
    state.ctx["signals"] = signals
    state.signals.setdefault(payload["name"], []).append(payload.get("data"))


def _timer_set(state: Execution, event: Event, payload: Payload) -> None:
    state.timers[event.entity_id] = Timer(event.entity_id, payload["cause"], payload["at"], event.step_run_id)


def _timer_fired(state: Execution, event: Event, _payload: Payload) -> None:
    state.timers.pop(event.entity_id, None)


def _paused(state: Execution, _event: Event, _payload: Payload) -> None:
    state.paused = True


def _resumed(state: Execution, _event: Event, _payload: Payload) -> None:
    state.paused = False


def _cancelled(state: Execution, _event: Event, payload: Payload) -> None:
    state.phase = "ending"
    state.outcome = payload.get("outcome", "cancelled")
    state.error = payload.get("error")
    for run in state.runs.values():
        run.phase = "cancelling"


def _finished(state: Execution, _event: Event, payload: Payload) -> None:
    state.phase = "ended"
    state.outcome = payload["status"]
    state.tokens.clear()
    state.timers.clear()
    state.forks.clear()


def _drop_lonely_forks(state: Execution) -> None:
    """Forget forks that at most one live carrier remembers, and take them out of its lineage."""
    if not state.forks:
        return
    carriers: list[Token | StepRun] = [*state.tokens.values(), *state.runs.values()]
    for fork_id in list(state.forks):
        holding = [carrier for carrier in carriers if fork_id in carrier.lineage]
        if len(holding) <= 1:
            del state.forks[fork_id]
            for carrier in holding:
                del carrier.lineage[fork_id]


_HANDLERS: dict[str, Handler] = {
    "playbook.execution.requested": _requested,
    "playbook.request.evaluated": _evaluated,
    "playbook.started": _started,
    "token.created": _token_created,
    "token.parked": _token_parked,
    "token.absorbed": _token_absorbed,
    "step.scheduled": _scheduled,
    "step.started": _run_started,
    "step.suspended": _suspended,
    "step.done": _run_ended,
    "step.failed": _run_ended,
    "next.evaluated": _routed,
    "ctx.patched": _patched,
    "signal.received": _signalled,
    "timer.set": _timer_set,
    "timer.fired": _timer_fired,
    "playbook.paused": _paused,
    "playbook.resumed": _resumed,
    "execution.cancelled": _cancelled,
    "playbook.finished": _finished,
}
