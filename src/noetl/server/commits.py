"""What is committed for a message, its decision or that a child cannot be started, and what is answered then.

Tested in tests/unit/server/test_sequencer.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from noetl.engine.decide import Decision
from noetl.engine.state import Execution
from noetl.model.errors import Conflict, NoetlError
from noetl.model.messages import ChildEnded, Report, Start, TimerDue
from noetl.ports import Claim, Commit, Committed, EventLog
from noetl.server.inbox import Answer, Entry
from noetl.server.starting import is_started_by


class Batch(Struct):
    """What is decided and not yet written: messages, what each is to change, and what those who report ask for."""

    now: int
    entries: list[Entry] = []
    commits: list[Commit] = []
    claims: list[Claim] = []
    postponed: list[Entry] = []  # to be decided later
    poison: list[tuple[Entry, Exception]] = []  # that cannot be decided

    def claim(self, entry: Entry, lease_ms: int) -> None:
        """Ask for what a worker wants with its report, unless it is gone."""
        message, takes, now = entry.message, entry.takes, self.now
        if takes is None or not isinstance(message, Report) or (entry.answer is not None and entry.answer.done()):
            entry.want = 0
        else:
            self.claims.append(Claim(message.worker, takes[0], entry.want, now, now + lease_ms, takes[1]))


def answer_of(row: Mapping[str, Any], verdict: Committed, is_late: bool = False) -> Answer:
    """Give what whoever sent a message is told, after it is durable."""
    row = {**row, "execution_id": verdict.execution_id, "last_seq": verdict.last_seq}
    return Answer(row, "late" if is_late else verdict.status)


def commit_of(entry: Entry, made: Decision) -> Commit:
    """Give what a decision changes: with it the message is consumed, and who sent it is written down."""
    cleared = made.cleared
    if isinstance(entry.message, TimerDue) and entry.message.timer_id not in dict(made.timers):
        cleared = tuple(dict.fromkeys((*cleared, entry.message.timer_id)))  # also one that nobody waits for any more
    elif not entry.is_own and entry.act is None:
        return made
    audit = () if entry.act is None else (entry.act,)
    return replace(made, cleared=cleared, consumed=entry.consumed, audit=audit)


async def of_another(log: EventLog, entry: Entry, start: Start, state: Execution) -> Commit | None:
    """Tell whoever starts an execution under an id that is another one's; None where it is its own, or free."""
    if not state.seq:
        return None
    first = await log.read(entry.execution_id, 0, 1)
    if not first and not entry.is_own:  # it is about to be written: whose it is can be seen in a moment
        raise Conflict
    if not first or is_started_by(first[0], start.message_id):
        return None
    return no_child(entry, start, Conflict(f"the id {entry.execution_id} is that of another execution"), state.seq)


def no_child(entry: Entry, start: Start, problem: NoetlError, at: int = 0) -> Commit:
    """Tell a parent that its child cannot be started; whoever else asked is told by an exception."""
    if start.parent is None or not entry.is_own:
        raise problem
    is_taken = isinstance(problem, Conflict)
    error = {"kind": "not_found", "code": "UNKNOWN_PLAYBOOK", "message": str(problem), "retryable": is_taken}
    error |= {"kind": "unknown", "code": "ID_TAKEN"} if is_taken else {}
    told = ChildEnded(
        f"{start.message_id}/unknown", str(start.parent.get("run_id")), entry.execution_id, "failed", None, error
    )
    parent = str(start.parent.get("execution_id"))
    return Commit(entry.execution_id, at, (), inbox=((parent, told),), consumed=entry.consumed)
