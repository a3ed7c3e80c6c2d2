"""Commits the most usual batch to a SQLite file: a report that ends a piece of work and brings the next.

It means the same as judging and applying a batch, and takes fewer statements: the row of the work that ended becomes that
of the next. Whatever does not fit goes the general way, in the same transaction. Tested in tests/conformance/test_steps.py
and tests/unit/stores/test_sqlite_economy.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from noetl.model.work import Lease, WorkItem
from noetl.ports import Claim, Commit, Receipt
from noetl.stores.queries import queries
from noetl.stores.sqlite_queue import Epochs
from noetl.stores.sqlite_rows import log_row, text, work_row
from noetl.stores.steps import done, next_holder

_SQL = queries("sqlite")
_REPLACE, _APPEND = _SQL["replace_work"], _SQL["append_events"]
_work = msgspec.json.Decoder(WorkItem).decode


def commit_step(
    connection: sqlite3.Connection, commit: Commit, claims: Sequence[Claim], epochs: Epochs
) -> Receipt | None:
    """Apply a commit that leaves its execution's row as it is; None where it is no such step, and nothing is changed.

    Raises IntegrityError where the log is not as it expects.
    """
    place = next_holder(commit, claims)
    if place is None:
        return None
    claim, item, events = claims[place], commit.work[0], commit.events
    epoch, *block = epochs.next()
    written = text(item)
    row = work_row(item, events[-1].timestamp, written)
    given = (*row, epoch, claim.worker, claim.until, *commit.finished[0], claim.now, *block)
    if not connection.execute(_REPLACE, given).rowcount:
        return None  # older work is due, or it is not leased so, or other work of this name is there, or another took epochs
    epochs.took(epoch)
    connection.execute(_APPEND, log_row(events))
    return done(commit, claims, place, Lease(_work(written), epoch, 1, claim.until, claim.worker))
