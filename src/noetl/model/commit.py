"""Commits: everything that one decision changes, applied atomically.

A decision of the engine is a commit already, so nothing is copied on the way to the store; the server adds the sender. Tested in tests/conformance/test_event_log.py.
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
    """One audited action."""

    at: int
    actor: str
    action: str  # such as `execution.cancel`
    entity: str = ""
    detail: Mapping[str, Any] = {}
    number: int = 0  # assigned by the store


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Everything that one decision on one execution changes; applied atomically."""

    execution_id: str
    expected_seq: int
    events: tuple[Event, ...] = ()
    work: tuple[WorkItem, ...] = ()  # to queue; the content of work that is queued already is replaced
    finished: tuple[tuple[str, int], ...] = ()  # (work_id, epoch) to remove; must be leased with that epoch
    held: tuple[tuple[str, int], ...] = ()  # (work_id, epoch) that must be leased with that epoch, and stays leased
    dropped: tuple[str, ...] = ()  # work to remove, leased or not
    timers: tuple[tuple[str, int], ...] = ()  # (timer_id, at) to set
    cleared: tuple[str, ...] = ()  # timers to remove
    inbox: tuple[tuple[str, AnyMessage], ...] = ()  # (execution_id, message) that the system sends to itself
    consumed: tuple[str, ...] = ()  # ids of inbox messages that this commit applies
    projection: Mapping[str, Any] = {}  # the row of `execution`: status, result, times, counts; path, parent, tags and
    # started_at never change
    audit: tuple[AuditEntry, ...] = ()  # audit entries
    letters: tuple[LetterChange, ...] = ()  # dead letters that are created or changed
