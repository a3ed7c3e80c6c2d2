"""The queue in a SQLite file: new work comes in, and claims are served, inside the transaction that has begun.

Tested in tests/conformance and tests/unit/stores/test_sqlite_economy.py.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

import msgspec

from noetl.model.work import Lease, WorkItem
from noetl.ports import Claim
from noetl.stores.queries import queries
from noetl.stores.sqlite_rows import text, work_row

Leases = tuple[tuple[Lease, ...], ...]  # of each claim
_SQL = queries("sqlite")
_HAS_DUE, _PUT, _PUT_LEASED = _SQL["has_due_work"], _SQL["put_work"], _SQL["put_leased_work"]
_RIPEN, _FIND, _LEASE = _SQL["ripen_work"], _SQL["find_work"], _SQL["lease_work"]
_decode = msgspec.json.decode
_work = msgspec.json.Decoder(WorkItem).decode
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

    def next(self) -> tuple[int, int, str]:
        """Give the next epoch, and what the file says if it may be used: the end of the last block, and who took it."""
        return self._given + 1, self._end if self._given < self._end else -1, self._holder

    def took(self, epoch: int) -> None:
        """Note that the next epoch is used."""
        self._given = epoch


def hand_out(
    connection: sqlite3.Connection,
    work: Mapping[str, WorkItem],
    born: Mapping[str, int],
    claims: Sequence[Claim],
    epochs: Epochs,
) -> Leases:
    """Put new work in the queue and serve claims; where nothing older is due, the new work is born leased."""
    if not claims:
        if work:
            _put(connection, work.values(), born, connection.execute(_SQL["last_place"]).fetchone()[0])
        return ()
    due, place, last = _standing(connection, claims)
    if due:
        if work:
            _put(connection, work.values(), born, place)
        return _take(connection, claims, epochs, last)
    if not work:
        return ((),) * len(claims)
    leases, rest = _born_leased(connection, work, born, claims, epochs, place, last)
    if rest:
        _put(connection, rest, born, place)
    return leases


def serve(connection: sqlite3.Connection, claims: Sequence[Claim], epochs: Epochs) -> Leases:
    """Lease queued work to those who ask, in the transaction that has begun."""
    return hand_out(connection, {}, {}, claims, epochs)


def is_due(connection: sqlite3.Connection, claims: Sequence[Claim]) -> bool:
    """Tell whether there may be work for those who ask."""
    return bool(claims) and _standing(connection, claims)[0]


def _standing(connection: sqlite3.Connection, claims: Sequence[Claim]) -> tuple[bool, int, tuple[int, str]]:
    """Tell whether work is due of a pool that is asked for, the last place of the queue, and what is said of epochs."""
    pools = claims[0].pools if len(claims) == 1 else {pool for claim in claims for pool in claim.pools}
    due, now = False, claims[0].now
    row: Any = ()
    for pool in pools or ("",):
        row = connection.execute(_HAS_DUE, (pool, now)).fetchone()
        due = due or bool(row[0])
    return due, row[1], row[2:]


def _put(connection: sqlite3.Connection, items: Iterable[WorkItem], born: Mapping[str, int], place: int) -> None:
    rows = [(*work_row(item, born[item.work_id], text(item)), at) for at, item in enumerate(items, place + 1)]
    connection.executemany(_PUT, rows)


def _born_leased(
    connection: sqlite3.Connection,
    work: Mapping[str, WorkItem],
    born: Mapping[str, int],
    claims: Sequence[Claim],
    epochs: Epochs,
    place: int,
    last: tuple[int, str],
) -> tuple[Leases, list[WorkItem]]:
    """Lease new work to those who ask, each piece to the first whom it suits; gives also what is left.

    What is in the queue already, such as work that goes on, is left.
    """
    items = list(work.values())
    if len(items) > 1:
        items.sort(key=lambda item: -item.priority)
    room = [max(claim.most, 0) for claim in claims]
    leases: list[list[Lease]] = [[] for _ in claims]
    rest = []
    epoch = None
    for item in items:
        n = _holder(item, claims, room)
        if n is None:
            rest.append(item)
            continue
        if epoch is None:
            epoch = epochs.take(connection, min(sum(room), len(items)), last)
        claim, written = claims[n], text(item)
        row = (*work_row(item, born[item.work_id], written), epoch + 1, claim.worker, claim.until, place + 1)
        if connection.execute(_PUT_LEASED, row).rowcount:
            epoch += 1
            room[n] -= 1
            leases[n].append(Lease(_work(written), epoch, 1, claim.until, claim.worker))
        else:
            rest.append(item)
    return tuple(map(tuple, leases)), rest


def _holder(item: WorkItem, claims: Sequence[Claim], room: Sequence[int]) -> int | None:
    """Give the place of the first claim that a piece of work suits, and that has room."""
    for n, claim in enumerate(claims):
        suits = item.pool in claim.pools and item.available_at <= claim.now
        if room[n] and suits and (not item.requires or set(item.requires).issubset(claim.tags)):
            return n
    return None


def _take(
    connection: sqlite3.Connection, claims: Sequence[Claim], epochs: Epochs, last: tuple[int, str] | None
) -> Leases:
    """Lease the oldest work in the queue; those who ask for the same one after the other are served together."""
    connection.execute(_RIPEN, (claims[0].now,))
    leases = []
    for (pools, tags), group in groupby(claims, attrgetter("pools", "tags")):
        alike = list(group)
        found = _oldest(connection, pools, tags, sum([max(claim.most, 0) for claim in alike]))
        epoch = epochs.take(connection, len(found), last) if found else 0
        last = None  # it may have taken a block
        rows, following = [], iter(found)
        for claim in alike:
            taken = []
            for _, _, number, attempts, written in islice(following, max(claim.most, 0)):
                epoch += 1
                rows.append((epoch, claim.worker, claim.until, number))
                taken.append(Lease(_work(written), epoch, attempts + 1, claim.until, claim.worker))
            leases.append(tuple(taken))
        connection.executemany(_LEASE, rows)
    return tuple(leases)


def _oldest(connection: sqlite3.Connection, pools: Sequence[str], tags: Sequence[str], most: int) -> list[Any]:
    """Give the rows of queued work that is for whoever has these tags, in order."""
    if len(pools) == 1 and not tags:
        return connection.execute(_FIND, (pools[0], "", most)).fetchall()
    orders = [
        connection.execute(_FIND, (pool, requires, most)).fetchall()
        for pool in dict.fromkeys(pools)
        for requires in _covered(connection, pool, tags)
    ]
    return list(islice(merge(*orders, key=lambda row: (-row[0], row[1])), most))


def _covered(connection: sqlite3.Connection, pool: str, tags: Sequence[str]) -> Iterator[str]:
    """Give what queued work of a pool requires, each once, where the tags have all of it; one seek in the index for each."""
    yield ""
    found = "" if tags else None  # whoever has no tags need not look
    while found is not None:
        found = connection.execute(_SQL["next_requires"], (pool, found)).fetchone()[0]
        if found is not None and set(_decode(found)).issubset(tags):
            yield found
