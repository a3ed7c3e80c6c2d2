"""Commits: all changes of a decision, applied atomically, with audit entries.

Tested in tests/conformance/test_event_log.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.model.events import Event
from noetl.model.letters import LetterChange
from noetl.model.messages import AnyMessage
from noetl.model.work import WorkItem


class AuditEntry(msgspec.Struct, frozen=True):
    """Entry of the audit trail: who did what."""

    at: int
    actor: str
    action: str  # such as `execution.cancel`
    entity: str = ""
    detail: Mapping[str, Any] = {}
    number: int = 0  # assigned by the store
    before: str = ""  # reference to what the object was, such as `version 2`; never a secret
    after: str = ""  # reference to what it is


class Slot(msgspec.Struct, frozen=True):
    """What an execution needs to begin: a place under a limit, and its turn by a rate."""

    key: str  # executions with this key count
    limit: int = 0  # how many of them may run at once; 0: any number
    rate: str = ""  # key of the rate; empty: none
    interval_us: int = 0  # between two of them
    burst: int = 1  # how many may begin at once after a pause
    at: int = 0
    above: str = ""  # key of a limit of the server, under which it needs a place too
    above_limit: int = 0


class Intake(msgspec.Struct, frozen=True):
    """Message of a subscription that a commit takes in, and the position after it.

    It is refused unless the stored position has this revision, and the message is new.
    """

    state_id: str  # of the subscription's state
    position: Mapping[str, Any]
    revision: int
    message_id: str = ""  # empty: the position alone tells new messages
    shown: str = ""  # id of the message for readers; empty: only the position moves
    is_poisoned: bool = False  # it becomes a dead letter
    at: int = 0


class Commit(msgspec.Struct, frozen=True, gc=False):
    """All changes of one decision of an execution, applied atomically."""

    execution_id: str
    expected_seq: int
    events: tuple[Event, ...] = ()
    work: tuple[WorkItem, ...] = ()  # to enqueue; existing work keeps its lease and place, and its content is replaced
    finished: tuple[tuple[str, int], ...] = ()  # (work_id, epoch) to remove; must be leased with that epoch
    held: tuple[tuple[str, int], ...] = ()  # (work_id, epoch) that must be leased with that epoch, and stays leased
    dropped: tuple[str, ...] = ()  # work to remove regardless of its lease: cancelled, replaced
    timers: tuple[tuple[str, int], ...] = ()  # (timer_id, at) to set
    cleared: tuple[str, ...] = ()  # timers to remove
    inbox: tuple[tuple[str, AnyMessage], ...] = ()  # (execution_id, message) to send within the system
    consumed: tuple[str, ...] = ()  # ids of inbox messages that this commit applies
    # The row of the execution: status, result, times, counts. Its path, parent, tags and started_at never change.
    projection: Mapping[str, Any] = {}
    audit: tuple[AuditEntry, ...] = ()  # audit entries
    letters: tuple[LetterChange, ...] = ()  # new and changed dead letters
    has_same_row: bool = False  # the store holds this projection already, and does not write it again
    slot: Slot | None = None  # the execution begins with it; without a place under its limits the commit is `full`
    intake: Intake | None = None  # what a subscription takes in with it; taken in before, the commit is `passed`
