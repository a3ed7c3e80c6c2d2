"""Moves tokens until nothing moves: joins, gates, deadlocks of joins, parked tokens, the end.

Called after every message, when all tokens of a routing exist. Tested in tests/unit/engine/test_laws.py and test_join.py.
"""

from __future__ import annotations

from noetl.engine import admit
from noetl.engine.decision import Deciding
from noetl.engine.join import Meeting, deadlocked, meetings
from noetl.engine.route import failure
from noetl.engine.saga import close, counts, stop

MOST_TRANSITIONS = 2_000  # step-runs that one message may lead to: steps without a tool can go round for ever


def advance(d: Deciding) -> None:
    """Move everything that can move."""
    state = d.state
    while True:
        if d.halted:
            stop(d, "another step failed and stopped the execution")
        if d.transitions > MOST_TRANSITIONS and _goes_round(d) and state.phase == "running":
            _break_cycle(d)
        if state.phase != "running":
            if state.phase not in ("ending", "closing") or not close(d):
                return
        elif not state.tokens and state.runs:
            return  # nothing is there to be moved, and something is under way
        elif not ((not state.paused and _move(d)) or _settle(d)):
            return


def _goes_round(d: Deciding) -> bool:
    return d.transitions > MOST_TRANSITIONS and d.transitions > 4 * len(d.plan.net.steps)


def _break_cycle(d: Deciding) -> None:
    message = f"more than {d.transitions - 1} step-runs followed from one event: steps without a tool go round for ever"
    payload = {"cause": "endless", "outcome": "failed", "error": failure("unknown", message, "ENDLESS_CYCLE")}
    d.emit("execution.cancelled", d.state.execution_id, payload)
    stop(d, message)


def _move(d: Deciding) -> bool:
    """Handle every meeting once, then parked tokens; tells whether something moved."""
    tokens = d.state.tokens
    if not tokens:
        return d.halted
    if len(tokens) == 1:
        [token] = tokens.values()
        if not token.lineage and not token.parked and d.plan.steps[token.step].lets_in and admit.has_room(d):
            admit.schedule(d, token.step, [token])  # the straight way: nothing can hold it
            return True
    moved = False
    waiting: list[Meeting] = []
    for meeting in meetings(d.plan, d.state):
        if d.halted or d.state.phase != "running" or _goes_round(d):
            return True
        if meeting.verdict == "wait":
            waiting.append(meeting)
        elif any(token.token_id not in tokens for token in meeting.tokens):
            moved = True  # an earlier meeting of this round took it along
        elif meeting.verdict == "absorb":
            token = meeting.tokens[0]
            reason = "another branch of its fork came first"
            d.emit("token.absorbed", token.token_id, {"step": meeting.step, "reason": reason})
            moved = True
        elif admit.has_room(d):
            _arrive(d, meeting)
            moved = True
    if moved or d.halted:
        return True
    if d.retry_gates:
        d.retry_gates = False
        if admit.retry(d):
            return True
    stuck = deadlocked(waiting)
    if stuck is not None and admit.has_room(d):
        _arrive(d, stuck)
        return True
    return False


def _arrive(d: Deciding, meeting: Meeting) -> None:
    reached = meeting.needed <= meeting.arrived
    admit.arrive(d, meeting.step, meeting.tokens, count=None if reached else (meeting.arrived, meeting.needed))


def _settle(d: Deciding) -> bool:
    """Look at an execution in which nothing moves; tells whether that changed something."""
    if d.state.runs:
        return False
    parked = [token for token in d.state.tokens.values() if token.parked]
    policy = d.plan.setting("on_parked", default="wait")
    if not d.state.tokens:
        d.emit("workflow.finished", "workflow", {"counts": counts(d.state)})
        return True
    if d.state.paused or not parked or policy not in ("finish", "fail"):
        return False
    for token in parked:
        payload = {"step": token.step, "reason": f"only parked tokens were left (`on_parked: {policy}`)"}
        if policy == "fail":
            message = f"the gate of step `{token.step}` never opened, and nothing is left that could open it"
            d.emit("token.absorbed", token.token_id, {**payload, "error": failure("unknown", message, "PARKED")})
        else:
            d.emit("token.absorbed", token.token_id, payload)
    return True
