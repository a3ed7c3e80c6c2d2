"""Commits a batch to a SQLite file, in the transaction that has begun.

A batch of plain commits is written as it expects the file to be, by one statement for each table, and the file refuses it
where it is not so. What else there is to a commit, and what was refused, is judged first by what the file holds, as in all
stores. Tested in tests/conformance and tests/unit/stores/test_sqlite_economy.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from noetl.model.messages import AnyMessage
from noetl.model.work import WorkItem
from noetl.ports import AuditEntry, Claim, Commit, Committed, Receipt
from noetl.stores.audit_sqlite import note
from noetl.stores.batch import Changes, about, judge
from noetl.stores.letters_sqlite import put_letters
from noetl.stores.queries import queries
from noetl.stores.sqlite_queue import Epochs, hand_out
from noetl.stores.sqlite_rows import log_row, text
from noetl.stores.sqlite_step import commit_step
from noetl.stores.steps import MOST_EVENTS, Written, are_plain

_SQL = queries("sqlite")
_APPEND, _END, _PUT_EXECUTION = _SQL["append_events"], _SQL["end_work"], _SQL["put_execution"]


def commit_batch(
    connection: sqlite3.Connection, commits: Sequence[Commit], claims: Sequence[Claim], epochs: Epochs, written: Written
) -> tuple[Receipt, Sequence[Commit] | Changes]:
    """Apply a batch and serve claims; gives also what was written."""
    try:
        if len(commits) == 1 and written.says(commits[0]):
            done = commit_step(connection, commits[0], claims, epochs)
            if done is not None:
                return done, commits
        if are_plain(commits):
            return _commit_plain(connection, commits, claims, epochs, written), commits
    except sqlite3.IntegrityError:  # the file is not as they expect
        connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
    facts = _Facts(connection, commits)
    verdicts, changes = judge(commits, facts)
    apply(connection, changes, written.unchanged(facts.last_seqs, changes))
    return Receipt(verdicts, hand_out(connection, changes.work, changes.born, claims, epochs)), changes


def _commit_plain(
    connection: sqlite3.Connection, commits: Sequence[Commit], claims: Sequence[Claim], epochs: Epochs, written: Written
) -> Receipt:
    """Apply plain commits as they expect the file to be. Raises IntegrityError where it is not so."""
    logs: list[tuple[Any, ...]] = []
    ended: list[tuple[str, int]] = []
    executions: list[tuple[Any, ...]] = []
    work: dict[str, WorkItem] = {}
    born: dict[str, int] = {}
    audit: list[AuditEntry] = []
    verdicts: list[Committed] = []
    for commit in commits:
        events = commit.events
        logs.append(log_row(events))
        ended += commit.finished
        if not written.says(commit):
            executions.append(_execution_row(commit.execution_id, commit.projection))
        for item in commit.work:
            work[item.work_id] = item
            born[item.work_id] = events[-1].timestamp
        audit += commit.audit
        verdicts.append(Committed(commit.execution_id, "applied", commit.expected_seq + len(events)))
    connection.executemany(_APPEND, logs)
    if ended and connection.executemany(_END, ended).rowcount != len(ended):
        raise sqlite3.IntegrityError("work that is to end is not leased so")
    if executions:
        connection.executemany(_PUT_EXECUTION, executions)
    if audit:
        note(connection, audit)
    return Receipt(tuple(verdicts), hand_out(connection, work, born, claims, epochs))


class _Facts:
    """What the file holds, asked inside the transaction: of each commit in one question."""

    def __init__(self, connection: sqlite3.Connection, commits: Sequence[Commit]) -> None:
        self._execute = connection.execute
        self.last_seqs: dict[str, int] = {}
        self._applied: set[tuple[str, str]] = set()
        self._leases: dict[str, int | None] = {}
        for commit in commits:
            name = commit.execution_id
            first = commit.events[0].event_id if commit.events else ""
            work_id = commit.finished[0][0] if commit.finished else ""
            found = self._execute(_SQL["known"], (name, first, work_id)).fetchone()
            self.last_seqs[name], is_applied, self._leases[work_id] = found[0] or 0, found[1], found[2]
            if is_applied:
                self._applied.add((name, first))

    def last_seq(self, execution_id: str) -> int:
        return self.last_seqs[execution_id]

    def has_event(self, execution_id: str, event_id: str) -> bool:
        return (execution_id, event_id) in self._applied

    def has_message(self, message_id: str) -> bool:
        return self._execute(_SQL["has_message"], (message_id,)).fetchone() is not None

    def lease(self, work_id: str) -> int | None:
        if work_id in self._leases:
            return self._leases[work_id]
        row = self._execute(_SQL["lease_of"], (work_id,)).fetchone()
        return None if row is None else int(row[0])


def apply(connection: sqlite3.Connection, changes: Changes, unchanged: set[str]) -> None:
    """Write what a batch changes but its work, in the transaction that has begun; some executions' rows are `unchanged`."""
    parts = [log[first : first + MOST_EVENTS] for log in changes.logs for first in range(0, len(log), MOST_EVENTS)]
    connection.executemany(_APPEND, map(log_row, parts))
    for execution_id, seq in changes.last_seqs.items():
        projection = changes.projections.get(execution_id)
        if projection is not None:
            if execution_id not in unchanged:
                connection.execute(_PUT_EXECUTION, _execution_row(execution_id, projection))
        elif seq:
            connection.execute(_SQL["note_execution"], (execution_id,))
    connection.executemany(_SQL["remove_work"], [(work_id,) for work_id in changes.removed])
    for key, at in changes.timers.items():
        if at is None:
            connection.execute(_SQL["clear_timer"], key)
        else:
            connection.execute(_SQL["set_timer"], (*key, at))
    for message_id in changes.consumed:
        connection.execute(_SQL["remove_message"], (message_id,))
    for row in changes.messages.values():
        connection.execute(_SQL["put_message"], message_row(*row))
    if changes.audit:
        note(connection, changes.audit)
    if changes.letters:
        put_letters(connection, changes.letters.values())


def _execution_row(execution_id: str, projection: Mapping[str, Any]) -> tuple[Any, ...]:
    path, parent, tags, started_at = about(projection)
    status = str(projection.get("status", "pending"))
    return (status, text(projection), execution_id, path, parent, text(tags) if tags else "[]", started_at)


def message_row(execution_id: str, message: AnyMessage) -> tuple[str, str, str]:
    """Give the row of a message that the system sends itself."""
    return (message.message_id, execution_id, text(message))
