"""What is committed for a message, its decision or that a child cannot be started, and what is answered then.

Tested in tests/unit/server/test_sequencer.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from noetl.engine.decide import Decision
from noetl.model.errors import InvalidInput
from noetl.model.messages import ChildEnded, Start, TimerDue
from noetl.ports import Commit, Committed
from noetl.server.inbox import Answer, Entry


class Decided(Struct, frozen=True):
    """An entry, and what it is to change."""

    entry: Entry
    commit: Commit


def answer_of(row: Mapping[str, Any], verdict: Committed, is_late: bool = False) -> Answer:
    """Give what whoever sent a message is told, after it is durable."""
    row = {**row, "execution_id": verdict.execution_id, "last_seq": verdict.last_seq}
    return Answer(row, "late" if is_late else verdict.status)


def commit_of(entry: Entry, before: int, made: Decision) -> Commit:
    """Give what a decision changes."""
    cleared = made.cleared
    if isinstance(entry.message, TimerDue) and entry.message.timer_id not in dict(made.timers):
        cleared = tuple(dict.fromkeys((*cleared, entry.message.timer_id)))  # also one that nobody waits for any more
    return Commit(
        entry.execution_id,
        before,
        made.events,
        made.work,
        made.finished,
        made.held,
        made.dropped,
        made.timers,
        cleared,
        made.inbox,
        entry.consumed,
        made.projection,
        () if entry.act is None else (entry.act,),
    )


def no_child(entry: Entry, start: Start, problem: str) -> Commit:
    """Tell a parent that its child cannot be started; whoever else asked is told by an exception."""
    if start.parent is None or entry.answer is not None:
        raise InvalidInput(problem)
    error = {"kind": "not_found", "code": "UNKNOWN_PLAYBOOK", "message": problem, "retryable": False}
    told = ChildEnded(
        f"{start.message_id}/unknown", str(start.parent.get("run_id")), entry.execution_id, "failed", None, error
    )
    parent = str(start.parent.get("execution_id"))
    return Commit(entry.execution_id, 0, (), inbox=((parent, told),), consumed=entry.consumed)
