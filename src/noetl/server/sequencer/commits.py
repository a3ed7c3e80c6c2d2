"""Commits of decisions and of refused starts, and answers to callers.

Tested in tests/unit/server/sequencer/test_sequencer.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from noetl.engine.handlers.decide import Decision
from noetl.engine.state.execution import Execution
from noetl.model.errors import Conflict, NoetlError
from noetl.model.messages import ChildEnded, Start, TimerDue
from noetl.ports import Commit, Committed, EventLog
from noetl.ports.work import Answer
from noetl.server.cache.ids import is_started_by
from noetl.server.sequencer.inbox import Entry


def answer_of(row: Mapping[str, Any], verdict: Committed, *, is_late: bool = False) -> Answer:
    """Return the answer to a message that is durable."""
    row = {**row, "execution_id": verdict.execution_id, "last_seq": verdict.last_seq}
    return Answer("late" if is_late else verdict.status, row=row)


def commit_of(entry: Entry, decision: Decision) -> Commit:
    """Return the commit of a decision, with its consumed message and its sender."""
    cleared = decision.cleared
    if isinstance(entry.message, TimerDue) and entry.message.timer_id not in dict(decision.timers):
        cleared = tuple(dict.fromkeys((*cleared, entry.message.timer_id)))  # also one that nothing waits for any more
    elif not entry.is_own and entry.act is None and entry.intake is None:
        return decision
    audit = () if entry.act is None else (entry.act,)
    return replace(decision, cleared=cleared, consumed=entry.consumed, audit=audit, intake=entry.intake)


async def refuse_taken_id(log: EventLog, entry: Entry, start: Start, state: Execution) -> Commit | None:
    """Refuse a start whose id belongs to another execution; None if it does not."""
    if not state.seq:
        return None
    first = await log.read(entry.execution_id, 0, 1)
    if not first and not entry.is_own:  # it is about to be written: whose it is can be seen in a moment
        raise Conflict
    if not first or is_started_by(first[0], start.message_id):
        return None
    return refuse_child(entry, start, Conflict(f"the id {entry.execution_id} is that of another execution"), state.seq)


def refuse_child(entry: Entry, start: Start, problem: NoetlError, at: int = 0) -> Commit:
    """Return a commit that reports a failed start to the parent; without one, raise."""
    if start.parent is None or not entry.is_own:
        raise problem
    is_taken = isinstance(problem, Conflict)
    error = {"kind": "not_found", "code": "UNKNOWN_PLAYBOOK", "message": str(problem), "retryable": is_taken}
    error |= {"kind": "unknown", "code": "ID_TAKEN"} if is_taken else {}
    return child_ended(entry, start, error, at)


def child_ended(entry: Entry, start: Start, error: Mapping[str, Any], at: int = 0) -> Commit:
    """Return a commit that reports to the parent that its child never began."""
    parent = start.parent or {}
    ended = ChildEnded(
        f"{start.message_id}/unknown", str(parent.get("run_id")), entry.execution_id, "failed", None, error
    )
    inbox = ((str(parent.get("execution_id")), ended),)
    return Commit(entry.execution_id, at, (), inbox=inbox, consumed=entry.consumed)
