"""Commits: everything that a decision changes, which is applied whole or not at all; and who did it.

What the engine decides is a commit already, so nothing is copied on the way to the store; the server adds whose message it
was. Tested in tests/conformance/test_event_log.py.
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
    """One act."""

    at: int
    actor: str
    action: str  # such as `execution.cancel`
    entity: str = ""
    detail: Mapping[str, Any] = {}
    number: int = 0  # given by the store


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Everything that one execution's decision changes; applied whole or not at all."""

    execution_id: str
    expected_seq: int
    events: tuple[Event, ...] = ()
    work: tuple[WorkItem, ...] = ()  # to put in the queue; of work that is there already, the content is replaced
    finished: tuple[tuple[str, int], ...] = ()  # (work_id, epoch) to take out; must be leased with that epoch
    held: tuple[tuple[str, int], ...] = ()  # (work_id, epoch) that must be leased with that epoch, and stay so
    dropped: tuple[str, ...] = ()  # work to take out whatever its lease: cancelled, replaced
    timers: tuple[tuple[str, int], ...] = ()  # (timer_id, at) to set
    cleared: tuple[str, ...] = ()  # timers to remove
    inbox: tuple[tuple[str, AnyMessage], ...] = ()  # (execution_id, message) that the system sends itself
    consumed: tuple[str, ...] = ()  # message ids of the inbox that this commit applies
    projection: Mapping[str, Any] = {}  # the row of `execution`: status, result, times, counts; path, parent, tags and
    # started_at do not change after the first one
    audit: tuple[AuditEntry, ...] = ()  # who did it
    letters: tuple[LetterChange, ...] = ()  # dead letters: new ones, and what became of others
