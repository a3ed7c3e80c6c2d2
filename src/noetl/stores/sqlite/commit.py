"""Commits a batch to a SQLite file, inside the open transaction.

The transaction holds the write lock, so the facts are read first and the batch is judged on them: nothing that is written
can be refused afterwards. Tested in tests/conformance and tests/unit/stores/sqlite/test_commit.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from noetl.model.commit import Intake, Slot
from noetl.ports import Claim, Commit, Receipt
from noetl.stores.common.batch import KEPT_RATES_US, Changes, Facts, judge
from noetl.stores.common.intake_rows import intake_row
from noetl.stores.common.queries import queries
from noetl.stores.sqlite.dead_letters import put_letters
from noetl.stores.sqlite.queue import Epochs, hand_out
from noetl.stores.sqlite.rows import execution_row, log_row, message_row, write_audit

_SQL = queries("sqlite")
_READ_FACTS, _READ_LEASE, _FIND_MESSAGE = _SQL["read_facts"], _SQL["read_lease"], _SQL["find_message"]


def commit_batch(
    connection: sqlite3.Connection, commits: Sequence[Commit], claims: Sequence[Claim], epochs: Epochs
) -> Receipt:
    """Apply a batch and serve claims."""
    verdicts, changes = judge(commits, _read_facts(connection, commits))
    write_changes(connection, changes)
    return Receipt(verdicts, hand_out(connection, changes.work, changes.born, claims, epochs))


def _read_facts(connection: sqlite3.Connection, commits: Sequence[Commit]) -> Facts:
    """Read what a batch is judged on: one statement for most commits."""
    facts, execute = Facts(), connection.execute
    for commit in commits:
        name, leases = commit.execution_id, (*commit.finished, *commit.held) if commit.held else commit.finished
        first = commit.events[0].event_id if commit.events else ""
        work_id = leases[0][0] if leases else ""
        last_seq, is_applied, epoch = execute(_READ_FACTS, (name, first, work_id)).fetchone()
        facts.last_seqs[name] = last_seq or 0
        facts.leases[work_id] = epoch
        if is_applied:
            facts.applied.add((name, first))
        for work_id, _ in leases[1:]:
            row = execute(_READ_LEASE, (work_id,)).fetchone()
            facts.leases[work_id] = None if row is None else row[0]
        if commit.slot is not None:
            _read_limits(connection, commit.slot, facts)
        if commit.intake is not None:
            _read_intake(connection, commit.intake, facts)
        for message_id in commit.consumed:
            if execute(_FIND_MESSAGE, (message_id,)).fetchone() is not None:
                facts.messages.add(message_id)
    return facts


def _read_limits(connection: sqlite3.Connection, slot: Slot, facts: Facts) -> None:
    for key in {slot.key, slot.above} - {"", *facts.holders}:
        held = [row[0] for row in connection.execute(_SQL["holders"], (key,))]
        is_waited_for = connection.execute(_SQL["find_waiting"], (key,)).fetchone() is not None
        facts.add_limits({key: held}, {}, [key] if is_waited_for else [])
    if slot.rate and slot.rate not in facts.rates:
        row = connection.execute(_SQL["turn_of"], (slot.rate,)).fetchone()
        facts.add_limits({}, {slot.rate: 0 if row is None else row[0]})


def _read_intake(connection: sqlite3.Connection, intake: Intake, facts: Facts) -> None:
    row = connection.execute(_SQL["revision_of"], (intake.state_id,)).fetchone()
    key = (intake.state_id, intake.message_id)
    is_taken = connection.execute(_SQL["find_taken"], key).fetchone() is not None
    facts.add_positions({intake.state_id: 0 if row is None else row[0]}, [key] if is_taken else [])


def write_changes(connection: sqlite3.Connection, changes: Changes) -> None:
    """Write what a batch changes, except its new work."""
    write = connection.executemany
    if changes.logs:
        write(_SQL["append_events"], [log_row(events) for events in changes.log_parts()])
        begun = {log[0].execution_id for log in changes.logs if log[0].seq == 1} - changes.projections.keys()
        if begun:
            write(_SQL["note_execution"], zip(begun))
    if changes.projections:
        write(_SQL["put_execution"], [execution_row(*item) for item in changes.projections.items()])
    if changes.removed:
        write(_SQL["remove_work"], zip(changes.removed))
    if changes.timers:
        write(_SQL["clear_timer"], [key for key, at in changes.timers.items() if at is None])
        write(_SQL["set_timer"], [(*key, at) for key, at in changes.timers.items() if at is not None])
    if changes.consumed:
        write(_SQL["remove_message"], zip(changes.consumed))
    if changes.messages:
        write(_SQL["put_message"], [message_row(*row) for row in changes.messages.values()])
    if changes.audit:
        write_audit(connection, changes.audit)
    if changes.rates:
        write(_SQL["put_rate"], list(changes.rates.items()))
        connection.execute(_SQL["forget_rates"], (min(changes.rates.values()) - KEPT_RATES_US,))
    for intake in changes.intakes:
        connection.execute(_SQL["put_intake"], intake_row(intake))
        if intake.message_id:
            connection.execute(_SQL["put_taken"], (intake.state_id, intake.message_id, intake.at))
    if changes.letters:
        put_letters(connection, changes.letters.values())
