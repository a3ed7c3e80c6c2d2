"""The end of an execution: what runs is ended, then compensation newest first, then the final step, then the status.

Children that were under way undo what they did before their parent does. What is being undone is not cancelled: only
whoever says so abandons it.

Tested in tests/unit/engine/test_ending.py.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from noetl.engine.carriers import left_alone
from noetl.engine.decision import DecisionBuilder
from noetl.engine.plan import Plan
from noetl.engine.route import failure
from noetl.engine.runs import schedule
from noetl.engine.state import Completed, Execution
from noetl.model.messages import Cancel, ChildEnded

_FIRST_DELAY_MS = 1_000
_DONE, _FAILED, _SKIPPED = itemgetter("done"), itemgetter("failed"), itemgetter("skipped")


def stop(d: DecisionBuilder, reason: str) -> None:
    """End everything that is in flight: the work is taken out of the queue, so later reports are late."""
    undo = _rolls_back(d)
    for run in list(d.state.runs.values()):
        d.drop_work(run, undo=undo)
        payload = {"error": failure("cancelled", reason), "cancelled": True}
        if undo and any(owner == run.run_id for owner, _ in d.state.children.values()):
            payload["undo"] = True
        d.emit("step.failed", run.step, payload, run=run, status="cancelled")
    d.halted = False


def absorb(d: DecisionBuilder, reason: str) -> None:
    """Take out every token that is left."""
    for token in list(d.state.tokens.values()):
        d.emit("token.absorbed", token.token_id, {"step": token.step, "reason": reason})


def close(d: DecisionBuilder) -> bool:
    """Take the next step of an ending; tells whether there may be another one."""
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
    return next((found for found in reversed(state.completed) if found.state == "open"), None)


def _rolls_back(d: DecisionBuilder) -> bool:
    """Tell whether this ending is one that undoes what was done."""
    return rolls_back(d.plan, d.state)


def rolls_back(plan: Plan, state: Execution) -> bool:
    """Tell whether what was done is undone as things stand."""
    if state.cut == "abandoned":
        return False
    return state.undo or (state.outcome == "failed" and plan.playbook.rollback == "on_fail")


def undoing(plan: Plan, state: Execution) -> bool:
    """Tell whether something that was done is still to be undone, or is being undone now."""
    if state.phase not in ("ending", "closing") or not rolls_back(plan, state):
        return False
    if left_alone(state) or any(run.role == "compensation" for run in state.runs.values()):
        return True
    return not state.final_ended and any(found.state == "open" for found in state.completed)


def refused(plan: Plan, state: Execution) -> str | None:
    """Tell why an execution is not cancelled: something is being undone, and would stay half done; None where it may be."""
    if not undoing(plan, state):
        return None
    left = sum(found.state == "open" for found in state.completed) + len(left_alone(state))
    return (
        f"execution {state.execution_id} is undoing what was done ({left} left), and goes on with that: it ends by itself. "
        f"`noetl explain {state.execution_id}` tells what it waits for"
    )


def abandon(d: DecisionBuilder, message: Cancel, reason: str) -> None:
    """Give up what is left to undo, here and in children; the execution keeps the outcome and the error that it has."""
    state = d.state
    left = [found.run_id for found in state.completed if found.state == "open"]
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
        "results": {name: ended.result for name, ended in state.ended.items() if ended.status == "ok"},
    }
    _run(d, d.plan.final, "final", args, {})


def _run(d: DecisionBuilder, step: str, role: str, args: dict[str, Any], more: dict[str, Any]) -> None:
    number = d.state.numbers.get(f"run:{step}", 0) + 1
    schedule(d, step, {"number": number, "args": args, "role": role, **more})


def counts(state: Execution) -> dict[str, int]:
    """Count step-runs by how they ended."""
    found = state.counts.values()
    return {"done": sum(map(_DONE, found)), "failed": sum(map(_FAILED, found)), "skipped": sum(map(_SKIPPED, found))}


def _finish(d: DecisionBuilder) -> None:
    state = d.state
    status = state.outcome or "completed"
    payload: dict[str, Any] = {"status": status, "result": state.result, "error": state.error}
    if _rolls_back(d) or state.cut == "abandoned":
        # A final step that fails after success undoes nothing: then what was done stays, and this says so.
        all_done = all(found.state == "done" for found in state.completed)
        payload["compensated"] = all_done and state.compensated is not False
    took = float(max(0, d.at - state.started_at))
    d.emit("playbook.finished", state.execution_id, payload, status=status, duration_ms=took)
    d.emit("playbook.processed", state.execution_id)
    if state.parent is not None:
        d.send(str(state.parent.get("execution_id")), child_ended(state, d.message_id()))


def child_ended(state: Execution, message_id: str) -> ChildEnded:
    """Give what an execution that has ended tells its parent."""
    parent = state.parent or {}
    result, status = state.result, state.status
    named = state.ended.get(str(parent.get("return_step")))
    if named is not None:
        result = named.result
    error = _told(state.error, status)
    run_id = str(parent.get("run_id"))
    return ChildEnded(message_id, run_id, state.execution_id, status, result, error, state.compensated)


def _told(error: Any, status: str) -> Any:
    if error is not None or status in ("completed", "partial"):
        return error
    return failure("cancelled" if status == "cancelled" else "unknown", f"the child ended {status}")
