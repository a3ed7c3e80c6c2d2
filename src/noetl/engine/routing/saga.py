"""The end of an execution: runs, compensations, final step, status.

Children in flight compensate before their parent does. A compensation in progress is not cancelled, unless the request
says `abandon`. Tested in tests/unit/engine/routing/test_saga.py.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from noetl.engine.decision.builder import DecisionBuilder
from noetl.engine.plan.plan import Plan
from noetl.engine.routing.route import failure
from noetl.engine.routing.runs import schedule
from noetl.engine.state.execution import Completed, Execution
from noetl.engine.state.lineage import left_alone
from noetl.model.messages import Cancel, ChildEnded
from noetl.model.refs import expanded

_FIRST_DELAY_MS = 1_000
_DONE, _FAILED, _SKIPPED = itemgetter("done"), itemgetter("failed"), itemgetter("skipped")


def stop(d: DecisionBuilder, reason: str) -> None:
    """End every run in flight and drop its work, so that later reports are late."""
    undo = _rolls_back(d)
    for run in list(d.state.runs.values()):
        d.drop_work(run, undo=undo)
        payload = {"error": failure("cancelled", reason), "cancelled": True}
        if undo and any(owner == run.run_id for owner, _ in d.state.children.values()):
            payload["undo"] = True
        d.emit("step.failed", run.step, payload, run=run, status="cancelled")
    d.halt(False)


def give_up(d: DecisionBuilder, message: str, code: str) -> None:
    """End an execution that goes round for ever; no failure arc is taken."""
    payload = {"cause": "endless", "outcome": "failed", "error": failure("unknown", message, code)}
    d.emit("execution.cancelled", d.state.execution_id, payload)
    stop(d, message)


def absorb(d: DecisionBuilder, reason: str) -> None:
    """Absorb every token that is left."""
    for token in list(d.state.tokens.values()):
        d.emit("token.absorbed", token.token_id, {"step": token.step, "reason": reason})


def close(d: DecisionBuilder) -> bool:
    """Take the next step of an ending; return whether another one may follow."""
    state = d.state
    if state.phase == "ending":
        if state.runs:
            stop(d, "the execution is ending")
        absorb(d, "the execution is ending")
        d.emit("workflow.finished", "workflow", {"counts": counts(state)})
        return True
    if state.runs or state.phase != "closing" or left_alone(state):
        return False
    undone = _next_undone(d)
    if undone is None and not _wants_final_step(d):
        _finish(d)
        return True
    if state.paused:
        return False
    if undone is not None:
        _compensate(d, undone)
    else:
        _run_final_step(d)
    return True


def _next_undone(d: DecisionBuilder) -> Completed | None:
    state = d.state
    if not _rolls_back(d) or state.final_ended:
        return None
    return next((completed for completed in reversed(state.completed) if completed.state == "open"), None)


def _rolls_back(d: DecisionBuilder) -> bool:
    return rolls_back(d.plan, d.state)


def rolls_back(plan: Plan, state: Execution) -> bool:
    """Return whether an execution in this state compensates."""
    if state.cut == "abandoned":
        return False
    return state.undo or (state.outcome == "failed" and plan.playbook.rollback == "on_fail")


def undoing(plan: Plan, state: Execution) -> bool:
    """Return whether a compensation is pending or in progress."""
    if state.phase not in ("ending", "closing") or not rolls_back(plan, state):
        return False
    if left_alone(state) or any(run.role == "compensation" for run in state.runs.values()):
        return True
    return not state.final_ended and any(completed.state == "open" for completed in state.completed)


def refused(plan: Plan, state: Execution) -> str | None:
    """Return why an execution cannot be cancelled: it is compensating; None if it can."""
    if not undoing(plan, state):
        return None
    left = sum(completed.state == "open" for completed in state.completed) + len(left_alone(state))
    return (
        f"execution {state.execution_id} is rolling back ({left} left to compensate) and ends by itself. "
        f"`noetl explain {state.execution_id}` shows what it waits for"
    )


def abandon(d: DecisionBuilder, message: Cancel, reason: str) -> None:
    """Abandon the compensations that are left, here and in children."""
    state = d.state
    left = [completed.run_id for completed in state.completed if completed.state == "open"]
    payload = {"cause": "abandoned", "outcome": state.outcome, "error": state.error, "abandoned": left}
    children = left_alone(state)
    d.emit("execution.cancelled", state.execution_id, {**payload, "reason": reason, "by": message.by})
    for child in children:
        d.send(child, Cancel(d.message_id(), reason, by=message.by, abandon=True))
    stop(d, reason)


def _compensate(d: DecisionBuilder, completed: Completed) -> None:
    delay = _FIRST_DELAY_MS * 2 ** (completed.attempts - 1) if completed.attempts else 0
    more: dict[str, Any] = {"compensates": completed.run_id, "attempt": completed.attempts + 1}
    more |= {"available_at": d.at + delay} if delay else {}
    _run(d, completed.by, "compensation", {}, more)


def _wants_final_step(d: DecisionBuilder) -> bool:
    return d.plan.final is not None and not d.state.final_ended and d.state.cut is None


def _run_final_step(d: DecisionBuilder) -> None:
    state = d.state
    if d.plan.final is None:
        return
    args = {
        "counts": counts(state),
        "failures": list(state.failures),
        "results": {name: expanded(ended.result) for name, ended in state.ended.items() if ended.status == "ok"},
    }
    _run(d, d.plan.final, "final", args, {})


def _run(d: DecisionBuilder, step: str, role: str, args: dict[str, Any], more: dict[str, Any]) -> None:
    number = d.state.numbers.get(f"run:{step}", 0) + 1
    schedule(d, step, {"number": number, "args": args, "role": role, **more})


def counts(state: Execution) -> dict[str, int]:
    """Count ended step-runs by status."""
    by_step = state.counts.values()
    return {
        "done": sum(map(_DONE, by_step)),
        "failed": sum(map(_FAILED, by_step)),
        "skipped": sum(map(_SKIPPED, by_step)),
    }


def _finish(d: DecisionBuilder) -> None:
    state = d.state
    status = state.outcome or "completed"
    payload: dict[str, Any] = {"status": status, "result": state.result, "error": state.error}
    if _rolls_back(d) or state.cut == "abandoned":
        # A final step that fails after success compensates nothing; `compensated: false` says so.
        all_done = all(completed.state == "done" for completed in state.completed)
        payload["compensated"] = all_done and state.compensated is not False
    duration = float(max(0, d.at - state.started_at))
    d.emit("playbook.finished", state.execution_id, payload, status=status, duration_ms=duration)
    d.emit("playbook.processed", state.execution_id)
    if state.parent is not None:
        d.send(str(state.parent.get("execution_id")), child_ended(state, d.message_id()))


def child_ended(state: Execution, message_id: str) -> ChildEnded:
    """Return the message of an ended execution to its parent."""
    parent = state.parent or {}
    result, status = state.result, state.status
    returned = state.ended.get(str(parent.get("return_step")))
    if returned is not None:
        result = returned.result
    error = _child_error(state.error, status)
    run_id = str(parent.get("run_id"))
    return ChildEnded(message_id, run_id, state.execution_id, status, result, error, state.compensated)


def _child_error(error: Any, status: str) -> Any:
    if error is not None or status in ("completed", "partial"):
        return error
    return failure("cancelled" if status == "cancelled" else "unknown", f"the child ended {status}")
