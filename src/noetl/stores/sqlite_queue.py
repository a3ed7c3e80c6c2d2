"""The queue in a SQLite file: new work comes in, and claims are served, inside the transaction that has begun.

Tested in tests/conformance and tests/unit/stores/test_sqlite_economy.py.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice

import msgspec

from noetl.model.work import Lease, WorkItem
from noetl.ports import Claim
from noetl.stores.batch import Changes
from noetl.stores.queries import queries
from noetl.stores.sqlite_rows import text, work_row

_SQL = queries("sqlite")
_decode = msgspec.json.decode
_work = msgspec.json.Decoder(WorkItem)
_BLOCK = 256  # epochs that are taken out of the file at once


class Epochs:
    """Gives epochs that only ever grow, also where several processes lease work of one file.

    A block is taken out of the file at once. It is used as long as the file says that nobody took one after it, and that
    it was this one: a block of a transaction that was undone is not in the file.
    """

    def __init__(self) -> None:
        self._holder = secrets.token_hex(8)
        self._given = self._end = 0

    def take(self, connection: sqlite3.Connection, count: int, last: tuple[int, str] | None = None) -> int:
        """Take some epochs; gives the number before the first. `last` is what the file says of the last block, if known."""
        found = connection.execute(_SQL["last_epoch"]).fetchone() if last is None else last
        if found != (self._end, self._holder) or self._given + count > self._end:
            size = max(count, _BLOCK)
            self._end = connection.execute(_SQL["take_epochs"], (size, self._holder)).fetchone()[0]
            self._given = self._end - size
        self._given += count
        return self._given - count


def hand_out(
    connection: sqlite3.Connection, changes: Changes, claims: Sequence[Claim], epochs: Epochs
) -> tuple[tuple[Lease, ...], ...]:
    """Put new work in the queue and serve claims; where nothing older is due, the new work is born leased."""
    leases = _born_leased(connection, changes, claims, epochs) if changes.work and claims else None
    for item in changes.work.values():
        connection.execute(_SQL["put_work"], work_row(item, changes.born[item.work_id], text(item)))
    return tuple([tuple(take(connection, claim, epochs)) for claim in claims]) if leases is None else leases


def _born_leased(
    connection: sqlite3.Connection, changes: Changes, claims: Sequence[Claim], epochs: Epochs
) -> tuple[tuple[Lease, ...], ...] | None:
    """Lease new work to those who ask, unless older work is due: then None."""
    last = None
    for pool in {pool for claim in claims for pool in claim.pools}:
        is_due, value, holder = connection.execute(_SQL["has_due_work"], (pool, claims[0].now)).fetchone()
        if is_due:
            return None
        last = (value, holder)
    found = []
    for claim in claims:
        found.append(tuple(_claim_new(connection, changes, claim, epochs, last)))
        last = None  # it may have taken a block
    return tuple(found)


def _claim_new(
    connection: sqlite3.Connection, changes: Changes, claim: Claim, epochs: Epochs, last: tuple[int, str] | None
) -> list[Lease]:
    """Lease new work of a batch; what is in the queue already, such as work that goes on, stays with the changes."""
    suited = [
        item
        for item in changes.work.values()
        if item.pool in claim.pools
        and item.available_at <= claim.now
        and (not item.requires or set(item.requires).issubset(claim.tags))
    ]
    most = min(claim.most, len(suited))
    if most <= 0:
        return []
    epoch = epochs.take(connection, most, last)
    leases: list[Lease] = []
    for item in sorted(suited, key=lambda item: -item.priority) if len(suited) > 1 else suited:
        written = text(item)
        row = (*work_row(item, changes.born[item.work_id], written), epoch + 1, claim.worker, claim.until)
        if connection.execute(_SQL["put_leased_work"], row).rowcount:
            epoch += 1
            del changes.work[item.work_id]
            leases.append(Lease(_work.decode(written), epoch, 1, claim.until, claim.worker))
            if len(leases) == most:
                break
    return leases


def take(connection: sqlite3.Connection, claim: Claim, epochs: Epochs) -> list[Lease]:
    """Lease queued work to a worker, in the transaction that has begun."""
    if claim.most <= 0:
        return []
    if connection.execute(_SQL["has_ripe_work"], (claim.now,)).fetchone() is not None:
        connection.execute(_SQL["ripen_work"], (claim.now,))
    orders = [
        connection.execute(_SQL["find_work"], (pool, requires, claim.most)).fetchall()
        for pool in dict.fromkeys(claim.pools)
        for requires in _covered(connection, pool, claim.tags)
    ]
    found = list(islice(merge(*orders, key=lambda row: (-row[0], row[1])), claim.most))
    if not found:
        return []
    epoch = epochs.take(connection, len(found))
    leases = []
    for _, _, number, attempt, work in found:
        epoch += 1
        connection.execute(_SQL["lease_work"], (epoch, claim.worker, claim.until, number))
        leases.append(Lease(_work.decode(work), epoch, attempt + 1, claim.until, claim.worker))
    return leases


def _covered(connection: sqlite3.Connection, pool: str, tags: Sequence[str]) -> Iterator[str]:
    """Give what queued work of a pool requires, each once, where the tags have all of it; one seek in the index for each."""
    yield ""
    found = "" if tags else None  # whoever has no tags need not look
    while found is not None:
        found = connection.execute(_SQL["next_requires"], (pool, found)).fetchone()[0]
        if found is not None and set(_decode(found)).issubset(tags):
            yield found
