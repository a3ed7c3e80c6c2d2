"""Decides messages: a message and a state yield events and their commit.

    decide(plan, state, message, at, resolved) -> Decision | NeedsLoad

Every event is applied to `state` as it is emitted, so `fold(state, events)` is the decided state by construction. Pure:
the time is an argument and ids are derived. A decision that reads a stored result which is not in `resolved` returns
`NeedsLoad`; the caller loads it and decides again. Tested in tests/unit/engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noetl.engine.decision.builder import Decision, DecisionBuilder, begin
from noetl.engine.decision.evaluations import Evaluations, Heavy
from noetl.engine.decision.needs_load import NOTHING, Missing, NeedsLoad, Resolved
from noetl.engine.decision.scope import EventName
from noetl.engine.decision.work import open_work
from noetl.engine.handlers import redrive, reports
from noetl.engine.handlers.poison import refuse_discarded, settle
from noetl.engine.plan.plan import Plan
from noetl.engine.routing.admit import schedule
from noetl.engine.routing.flow import advance
from noetl.engine.routing.loops import collect, fail, go_on
from noetl.engine.routing.route import Ending, end, failure, patch
from noetl.engine.routing.saga import abandon, stop, undoing
from noetl.engine.routing.start import admit, rearm, start
from noetl.engine.routing.suspend import deliver, wake
from noetl.engine.state.execution import Execution, StepRun
from noetl.model.messages import (
    Admit,
    AnyMessage,
    Cancel,
    ChildEnded,
    Collect,
    Complete,
    Discard,
    LeaseLost,
    Mend,
    PatchCtx,
    Pause,
    Redrive,
    Report,
    Signal,
    Start,
    TimerDue,
    Unpause,
)

__all__ = ["Decision", "NeedsLoad", "decide", "late"]


def decide(
    plan: Plan,
    state: Execution,
    message: AnyMessage,
    at: int,
    resolved: Resolved = NOTHING,
    evaluations: Evaluations | None = None,
) -> Decision | NeedsLoad:
    """Decide a message on `state`; discard that after a `NeedsLoad` with `touched`."""
    if state.letters:
        refuse_discarded(state, message)
    d = begin(plan, state, message, at, resolved, evaluations)
    try:
        if state.phase not in ("pending", "ended") or isinstance(message, _accepted(state)):
            _HANDLERS[type(message)](d, message)
            advance(d)
    except Missing as missing:
        return NeedsLoad(missing.loads, missing.puts, bool(d.events))
    except Heavy as heavy:
        return NeedsLoad(touched=bool(d.events), template=heavy.template)
    if state.letters:
        settle(d)
    return d.build()


def _accepted(state: Execution) -> tuple[type, ...]:
    if state.phase == "pending":
        return (Start, Report)
    return _FOR_REPLAYS if state.replays else _AFTER_THE_END


def late(plan: Plan, state: Execution, message: Report, at: int) -> Decision:
    """Record a report whose lease was lost before its commit."""
    d = begin(plan, state, message, at)
    d.record_late(message)
    settle(d)
    return d.build()


def _signal(d: DecisionBuilder, message: Signal) -> None:
    payload = {"name": message.name, "data": message.data}
    d.emit("signal.received", message.name, payload)
    d.retry_gates({"name": EventName("signal.received"), "payload": payload})
    deliver(d, message.name)


def _patch(d: DecisionBuilder, message: PatchCtx) -> None:
    if message.writes:
        patch(d, message.writes, message.by or "api")


def _timer(d: DecisionBuilder, message: TimerDue) -> None:
    timer = d.state.timers.get(message.timer_id)
    if timer is None:
        return
    run = _run(d, timer.run_id or "")
    if timer.cause == "wake" and run is not None:
        d.emit("timer.fired", timer.timer_id, {"cause": timer.cause}, run=run, iteration=timer.index)
        wake(d, run, timer.index, {"by": "timer"})
        return
    d.emit("timer.fired", timer.timer_id, {"cause": timer.cause}, run=run)
    begun = max(d.state.started_at, d.state.admitted_at)  # time limits do not run before
    if timer.cause == "execution":
        if undoing(d.plan, d.state):
            return  # it has failed already: a compensation in progress is not interrupted
        seconds = (timer.at - begun) / 1000
        error = failure("timeout", f"the execution took longer than {seconds:g} s (`executor.spec.timeout_s`)")
        payload = {"cause": "timeout", "outcome": "failed", "error": error}
        d.emit("execution.cancelled", d.state.execution_id, payload)
        stop(d, "the execution took too long")
    elif run is not None:
        since = max(run.started_at if timer.cause == "step" else run.scheduled_at, begun)
        what = "loop" if timer.cause == "loop" else "step"
        text = f"the {what} `{run.step}` took longer than {(timer.at - since) / 1000:g} s"
        if timer.cause == "deadline":
            text += " from when it was scheduled (`deadline_s`)"
        _end_early(d, run, failure("timeout", text))


def _run(d: DecisionBuilder, run_id: str) -> StepRun | None:
    return d.state.runs.get(run_id) or d.state.replays.get(run_id)


def _end_early(d: DecisionBuilder, run: StepRun, error: dict[str, Any]) -> None:
    if run.loop is not None:
        fail(d, run, error)
    elif run.role == "replay":
        d.drop_work(run)
        redrive.give_back(d, run, error)
    else:
        d.drop_work(run)
        end(d, run, Ending("error", None, error, last={}))


def _child(d: DecisionBuilder, message: ChildEnded) -> None:
    if message.child_id not in d.state.children:
        return
    owner, index = d.state.children[message.child_id]
    run = _run(d, owner)
    if run is None:
        _finish_orphan(d, message, owner, index)
        return
    outcome = {"status": message.status, "result": message.result, "error": message.error}
    d.emit("child.finished", message.child_id, {"status": message.status}, run=run, iteration=index)
    wake(d, run, index, {"by": "child", "child_id": message.child_id, **outcome})


def _finish_orphan(d: DecisionBuilder, message: ChildEnded, owner: str, index: int | None) -> None:
    """Record the end of a child that only the end of this execution waits for."""
    payload: dict[str, Any] = {"status": message.status}
    payload |= {} if message.compensated is None else {"compensated": message.compensated}
    step = d.plan.step(owner.rpartition("#")[0])
    ended_well = message.compensated is None and message.status in ("completed", "partial") and index is None
    if ended_well and step.tasks[-1].kind == "playbook" and step.compensate in d.plan.net.index:
        payload |= {"compensate": step.compensate, "result": message.result}
    d.emit("child.finished", message.child_id, payload, step_run_id=owner, iteration=index)


def _cancel(d: DecisionBuilder, message: Cancel) -> None:
    reason = message.reason or "it was cancelled"
    if message.run_id is not None:
        run = d.state.runs.get(message.run_id)
        for target in [run] if run is not None else _unended(d, message.run_id):
            if target.phase != "routing":
                _end_early(d, target, failure("cancelled", reason))
        return
    if undoing(d.plan, d.state):
        if message.abandon:
            abandon(d, message, reason)
        return
    error = failure("cancelled", reason)
    payload: dict[str, Any] = {"cause": "cancelled", "outcome": "cancelled", "error": error, "by": message.by}
    payload |= {"compensate": True} if message.compensate else {}
    since = int(d.state.review["since"]) if d.state.review is not None else d.state.started_at
    is_withheld = d.state.is_withheld
    d.emit("execution.cancelled", d.state.execution_id, payload)
    if is_withheld:
        rearm(d, since)
    stop(d, reason)


def _complete(d: DecisionBuilder, message: Complete) -> None:
    """Complete a step: end its runs, or a new one for the tokens that wait there."""
    if message.step not in d.plan.net.index:
        return
    waiting = [token for token in d.state.tokens.values() if token.step == message.step]
    runs = _unended(d, message.step)
    if not runs and not waiting:
        return
    d.emit("step.forced", message.step, {"by": message.by} | ({"reason": message.reason} if message.reason else {}))
    if not runs:
        schedule(d, message.step, waiting)
    for run in _unended(d, message.step):
        d.drop_work(run)
        end(d, run, Ending("ok", message.result, is_loop=run.loop is not None))


def _unended(d: DecisionBuilder, step: str) -> list[StepRun]:
    return [run for run in d.state.runs.values() if run.step == step and run.phase != "routing"]


def _pause(d: DecisionBuilder, message: Pause) -> None:
    if message.review and d.state.review is None:
        for _, item in open_work(d.plan, d.state, {}):
            d.drop(item.work_id)
        d.emit("playbook.paused", d.state.execution_id, {"review": message.review, "since": d.state.at})
    elif not d.state.paused and d.state.phase != "ended":
        d.emit("playbook.paused", d.state.execution_id)


def _resume(d: DecisionBuilder, _message: Unpause) -> None:
    if not d.state.paused:
        return
    review = d.state.review
    d.emit("playbook.resumed", d.state.execution_id)
    if review is not None:
        rearm(d, int(review["since"]))
        for _, item in open_work(d.plan, d.state, {}):
            d.queue(item)
    d.retry_gates({"name": EventName("playbook.resumed"), "payload": {}})
    for run in list(d.state.runs.values()):
        go_on(d, run)


def _mend(d: DecisionBuilder, message: Mend) -> None:
    if message.seq != d.state.seq:
        return  # the execution has moved on since
    restored = {
        "work": [item.work_id for item in message.work],
        "timers": [name for name, _ in message.timers],
        "messages": [f"{type(sent).__name__} to {to}" for to, sent in message.inbox],
    }
    d.emit("execution.repaired", d.state.execution_id, {name: names for name, names in restored.items() if names})
    for item in message.work:
        d.queue(item)
    for timer_id, at in message.timers:
        d.arm_timer(timer_id, at)
    for to, sent in message.inbox:
        d.send(to, sent)


_HANDLERS: dict[type, Callable[[DecisionBuilder, Any], None]] = {
    Start: start,
    Report: reports.report,
    Signal: _signal,
    PatchCtx: _patch,
    TimerDue: _timer,
    ChildEnded: _child,
    Cancel: _cancel,
    Complete: _complete,
    Pause: _pause,
    Unpause: _resume,
    LeaseLost: reports.lease_lost,
    Collect: collect,
    Mend: _mend,
    Redrive: redrive.replay,
    Discard: redrive.discard,
    Admit: admit,
}
_AFTER_THE_END: tuple[type, ...] = (Start, Report, Redrive, Discard)
_FOR_REPLAYS: tuple[type, ...] = (*_AFTER_THE_END, TimerDue, ChildEnded, LeaseLost, Mend, Signal, Pause, Unpause)
