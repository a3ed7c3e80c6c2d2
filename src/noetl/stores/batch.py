"""Judges a batch of commits and folds those that apply into their net effect.

Every store shares it, so all of them mean the same by stale, duplicate and fenced. Does no I/O: a store answers what is
asked of it through `Facts`. Tested by tests/conformance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from noetl.model.events import Event
from noetl.model.letters import DeadLetter, LetterChange, changed
from noetl.model.messages import AnyMessage, LeaseLost
from noetl.model.work import Lease, WorkItem
from noetl.ports import AuditEntry, Beside, Commit, Committed

ALL = 2**31  # rows, where every one is wanted


class Facts(Protocol):
    """What a store holds before the batch."""

    def last_seq(self, execution_id: str) -> int: ...

    def has_event(self, execution_id: str, event_id: str) -> bool: ...

    def has_message(self, message_id: str) -> bool: ...

    def lease(self, work_id: str) -> int | None:
        """Give the epoch of the lease on a piece of work; None where there is none."""


class Changes(Struct):
    """What a batch changes. Removals come before additions: work may be taken out and put in again as new."""

    logs: list[tuple[Event, ...]] = []  # the events of each commit
    last_seqs: dict[str, int] = {}
    projections: dict[str, Mapping[str, Any]] = {}
    removed: dict[str, None] = {}
    work: dict[str, WorkItem] = {}
    born: dict[str, int] = {}  # when work came: the time of the events that it came with
    timers: dict[tuple[str, str], int | None] = {}  # None: cleared
    consumed: dict[str, None] = {}
    messages: dict[str, tuple[str, AnyMessage]] = {}
    audit: list[AuditEntry] = []
    letters: dict[str, LetterChange] = {}  # of each the net change

    @property
    def events(self) -> list[Event]:
        return [event for log in self.logs for event in log]


def judge(commits: Sequence[Commit], facts: Facts) -> tuple[tuple[Committed, ...], Changes]:
    """Tell what becomes of each commit, and what the applied ones change together."""
    changes = Changes()
    verdicts = []
    first: set[tuple[str, str]] = set()  # of the events of this batch
    refused: set[str] = set()  # executions of which the batch holds decisions that build on one that does not apply
    for commit in commits:
        last = changes.last_seqs.get(commit.execution_id)
        if last is None:
            last = facts.last_seq(commit.execution_id)
        # Somebody else's events may have the numbers of the refused ones, so the number alone tells nothing here.
        status = "stale" if commit.execution_id in refused else _status(commit, last, changes, facts)
        if commit.events and status == "applied":
            key = (commit.execution_id, commit.events[0].event_id)
            status = "duplicate" if key in first else status
            first.add(key)
        if status == "applied":
            last += len(commit.events)
            _fold(commit, last, changes)
        elif commit.events:
            refused.add(commit.execution_id)
        verdicts.append(Committed(commit.execution_id, status, last))
    return tuple(verdicts), changes


def _status(commit: Commit, last: int, changes: Changes, facts: Facts) -> str:
    if commit.expected_seq != last:
        return "stale"
    for message_id in commit.consumed:
        if message_id in changes.consumed or not facts.has_message(message_id):
            return "duplicate"
    # The first event tells: its id is made of the message, and a message that did anything has a first event.
    if commit.events and facts.has_event(commit.execution_id, commit.events[0].event_id):
        return "duplicate"
    for work_id, epoch in (*commit.finished, *commit.held):
        if work_id in changes.removed or facts.lease(work_id) != epoch:
            return "fenced"
    return "applied"


def _fold(commit: Commit, last: int, changes: Changes) -> None:
    changes.last_seqs[commit.execution_id] = last
    if commit.events:
        changes.logs.append(commit.events)
    if commit.projection:
        changes.projections[commit.execution_id] = commit.projection
    for work_id in commit.dropped if not commit.finished else (*(one for one, _ in commit.finished), *commit.dropped):
        changes.removed[work_id] = None
        changes.work.pop(work_id, None)
    born = commit.events[-1].timestamp if commit.events else 0
    for item in commit.work:
        changes.work[item.work_id] = item
        changes.born[item.work_id] = born
    for timer_id in commit.cleared:
        changes.timers[commit.execution_id, timer_id] = None
    for timer_id, at in commit.timers:
        changes.timers[commit.execution_id, timer_id] = at
    for message_id in commit.consumed:
        changes.consumed[message_id] = None
    if commit.audit:
        changes.audit.extend(commit.audit)
    for change in commit.letters:
        _add_letter(changes, change)
    for execution_id, message in commit.inbox:
        changes.messages[message.message_id] = (execution_id, message)


def _add_letter(changes: Changes, change: LetterChange) -> None:
    known = changes.letters.get(change.message_id)
    whole = changed(known.letter, change) if known is not None else None
    changes.letters[change.message_id] = change if whole is None else replace(change, letter=whole)


def changes_of(rows: Sequence[Beside]) -> Changes:
    """Give rows as what a batch without events would change."""
    changes = Changes()
    for row in rows:
        changes.last_seqs[row.execution_id] = row.last_seq
        changes.projections[row.execution_id] = row.projection
        for since, item in row.work:
            changes.work[item.work_id] = item
            changes.born[item.work_id] = since
        changes.timers.update({(row.execution_id, name): at for name, at in row.timers})
        changes.messages.update({message.message_id: (to, message) for to, message in row.inbox})
        for one in row.letters:
            _add_letter(changes, LetterChange(one.message_id, one.status, one.last_seen, one))
    return changes


def by_id(letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    """Give dead letters in the order of their ids."""
    return sorted(letters, key=lambda letter: letter.message_id)


def about(projection: Mapping[str, Any]) -> tuple[str, str | None, list[str], int]:
    """Give what executions are chosen by, of a row: path, parent, tags, started_at."""
    return (
        str(projection.get("path", "")),
        projection.get("parent"),
        list(projection.get("tags", ())),
        int(projection.get("started_at", 0)),
    )


def lost(lease: Lease, exhausted: bool) -> LeaseLost:
    """Give the message that an expired lease leads to."""
    work = lease.work
    chunk = None if work.chunk is None else work.chunk.chunk_id
    return LeaseLost(f"lease:{work.work_id}:{lease.epoch}", work.run_id, lease.epoch, chunk, exhausted, lease.attempt)
