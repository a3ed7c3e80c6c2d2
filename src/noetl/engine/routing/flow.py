"""Moves tokens until nothing moves: joins, gates, and the end of the execution.

Called after every message, when all tokens of a routing exist. Tested in tests/unit/engine/test_laws.py and test_join.py.
"""

from __future__ import annotations

from noetl.engine.decision.builder import DecisionBuilder
from noetl.engine.routing import admit
from noetl.engine.routing.join import Meeting, deadlocked, meetings
from noetl.engine.routing.route import failure
from noetl.engine.routing.saga import close, counts, give_up, stop

MOST_TRANSITIONS = 2_000  # step-runs that one message may lead to: steps without a tool can form an endless cycle


def advance(d: DecisionBuilder) -> None:
    """Move every token that can move, and end the execution when nothing is left."""
    state = d.state
    while True:
        if d.halted:
            stop(d, "another step failed and stopped the execution")
        if d.transitions > MOST_TRANSITIONS and _is_endless(d) and state.phase == "running":
            _break_cycle(d)
        if state.phase != "running":
            if state.phase not in ("ending", "closing") or not close(d):
                return
        elif not state.tokens and state.runs:
            return  # no token to move, and a run in flight
        elif not ((not state.paused and _move(d)) or _settle(d)):
            return


def _is_endless(d: DecisionBuilder) -> bool:
    return d.transitions > MOST_TRANSITIONS and d.transitions > 4 * len(d.plan.net.steps)


def _break_cycle(d: DecisionBuilder) -> None:
    message = f"more than {d.transitions - 1} step-runs followed from one event: steps without a tool go round for ever"
    give_up(d, message, "ENDLESS_CYCLE")


def _move(d: DecisionBuilder) -> bool:
    """Handle every meeting once, then parked tokens; return whether something moved."""
    tokens = d.state.tokens
    if len(tokens) == 1 and not d.state.forks and admit.admit_alone(d, next(iter(tokens.values()))):
        return True
    moved = False
    waiting: list[Meeting] = []
    for meeting in meetings(d.plan, d.state):
        if moved and (d.halted or d.state.phase != "running" or _is_endless(d)):
            return True
        if meeting.verdict == "wait":
            waiting.append(meeting)
        elif moved and any(token.token_id not in tokens for token in meeting.tokens):
            pass  # an earlier meeting of this round consumed the token
        elif meeting.verdict == "absorb":
            token = meeting.tokens[0]
            reason = "another branch of its fork came first"
            d.emit("token.absorbed", token.token_id, {"step": meeting.step, "reason": reason})
            moved = True
        elif admit.has_room(d):
            admit.arrive(d, meeting)
            moved = True
    if moved:
        return True
    if d.take_gates_due() and admit.retry(d):
        return True
    stuck = deadlocked(waiting) if waiting else None
    if stuck is not None and admit.has_room(d):
        admit.arrive(d, stuck)
        return True
    return False


def _settle(d: DecisionBuilder) -> bool:
    state = d.state
    if state.runs:
        return False
    if not state.tokens:
        d.emit("workflow.finished", "workflow", {"counts": counts(state)})
        return True
    parked = [token for token in state.tokens.values() if token.parked]
    policy = d.plan.setting("on_parked", default="wait")
    if state.paused or not parked or policy not in ("finish", "fail"):
        return False
    for token in parked:
        payload = {"step": token.step, "reason": f"only parked tokens were left (`on_parked: {policy}`)"}
        if policy == "fail":
            message = f"the gate of step `{token.step}` never opened, and nothing is left that could open it"
            d.emit("token.absorbed", token.token_id, {**payload, "error": failure("unknown", message, "PARKED")})
        else:
            d.emit("token.absorbed", token.token_id, payload)
    return True
