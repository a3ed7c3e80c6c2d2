"""What is committed for a message: its decision, or that a child cannot be started.

Tested in tests/unit/server/test_sequencer.py.
"""

from __future__ import annotations

from noetl.engine.decide import Decision
from noetl.model.errors import InvalidInput
from noetl.model.messages import ChildEnded, Start, TimerDue
from noetl.ports import Commit
from noetl.server.inbox import Entry


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
