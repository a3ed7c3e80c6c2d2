"""Work queue in a SQLite file, inside the open transaction.

Adds new work and serves claims. Tested in tests/conformance and tests/unit/stores/sqlite/test_commit.py.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from noetl.model.work import Lease, WorkItem, distance, playbook_of
from noetl.ports import Claim
from noetl.stores.common.batch import in_turn, turns
from noetl.stores.common.queries import queries
from noetl.stores.common.work_limits import Room, names_in
from noetl.stores.sqlite.rows import text, work_row

Leases = tuple[tuple[Lease, ...], ...]  # of each claim
_SQL = queries("sqlite")
_decode = msgspec.json.decode
_decode_work = msgspec.json.Decoder(WorkItem).decode
_BLOCK = 256  # epochs that a process reserves at once
_HEAD = 128  # rows of the queue in which work of idle playbooks is looked for: it is queued at the front


class Epochs:
    """Allocates increasing epochs, also if several processes lease from one file.

    A process reserves a block of epochs in the file. The block is valid as long as the file names it as the last one:
    another process may have reserved the next block, and a block of a rolled back transaction is not in the file.
    """

    def __init__(self) -> None:
        self._holder = secrets.token_hex(8)
        self._used = self._end = 0

    def take(self, connection: sqlite3.Connection, count: int, last_block: tuple[int, str]) -> int:
        """Allocate epochs, given the file's last block; return the one before the first."""
        if last_block != (self._end, self._holder) or self._used + count > self._end:
            size = max(count, _BLOCK)
            self._end = connection.execute(_SQL["take_epochs"], (size, self._holder)).fetchone()[0]
            self._used = self._end - size
        self._used += count
        return self._used - count


class _Queue(Struct):
    due: bool  # work of a claimed pool is queued and due
    limited: bool  # work counts for a limit of the server
    last_place: int
    last_block: tuple[int, str]  # of epochs: its end and its holder


def hand_out(
    connection: sqlite3.Connection,
    work: Mapping[str, WorkItem],
    born: Mapping[str, int],
    claims: Sequence[Claim],
    epochs: Epochs,
) -> Leases:
    """Queue new work and serve claims; it is inserted as leased if none older is due."""
    if not claims:
        if work:
            place = connection.execute(_SQL["last_place"]).fetchone()[0]
            _enqueue(connection, work.values(), born, place, turns(work))
        return ()
    queue = _inspect(connection, claims)
    if queue.limited or any(item.limits for item in work.values()):
        _enqueue(connection, work.values(), born, queue.last_place, turns(work))
        return _lease_limited(connection, claims, epochs)
    if queue.due or any(claim.is_for_idle for claim in claims):
        _enqueue(connection, work.values(), born, queue.last_place, turns(work))
        return _lease_oldest(connection, claims, epochs)
    if not work:
        return ((),) * len(claims)
    behind = turns(work)
    leases, rest = _insert_leased(connection, in_turn(work, behind), born, claims, epochs, queue)
    if rest:
        _enqueue(connection, rest, born, queue.last_place, behind)
    return leases


def serve(connection: sqlite3.Connection, claims: Sequence[Claim], epochs: Epochs) -> Leases:
    """Lease queued work."""
    return hand_out(connection, {}, {}, claims, epochs)


def is_due(connection: sqlite3.Connection, claims: Sequence[Claim]) -> bool:
    """Return whether work may be due for the claims."""
    return bool(claims) and _inspect(connection, claims).due


def _inspect(connection: sqlite3.Connection, claims: Sequence[Claim]) -> _Queue:
    pools = claims[0].pools if len(claims) == 1 else {pool for claim in claims for pool in claim.pools}
    due, now = False, claims[0].now
    row: Any = ()
    for pool in pools or ("",):
        row = connection.execute(_SQL["has_due_work"], (pool, now)).fetchone()
        due = due or bool(row[0])
    return _Queue(due, bool(row[1]), row[2], row[3:])


def _enqueue(
    connection: sqlite3.Connection,
    items: Iterable[WorkItem],
    born: Mapping[str, int],
    place: int,
    behind: Mapping[str, int],
) -> None:
    rows = []
    ranks: dict[tuple[str, int, str], int] = {}  # of the next item of each flow
    for at, item in enumerate(items, place + 1):
        flow = (item.pool, item.priority, item.flow)
        if flow not in ranks:
            ranks[flow] = connection.execute(_SQL["next_rank"], (*flow, distance(item))).fetchone()[0]
        rank = ranks[flow] + behind[item.work_id]
        rows.append((*work_row(item, born[item.work_id], text(item)), at, rank))
    if rows:
        connection.executemany(_SQL["put_work"], rows)


def _insert_leased(
    connection: sqlite3.Connection,
    items: Sequence[WorkItem],
    born: Mapping[str, int],
    claims: Sequence[Claim],
    epochs: Epochs,
    queue: _Queue,
) -> tuple[Leases, list[WorkItem]]:
    """Lease new work to first matching claims; return the rest and what is queued."""
    capacity = [max(claim.most, 0) for claim in claims]
    leases: list[list[Lease]] = [[] for _ in claims]
    rest = []
    epoch, first = None, 0
    for item in items:
        while first < len(capacity) and not capacity[first]:
            first += 1  # served in full: not looked at again
        n = _first_match(item, claims, capacity, first)
        if n is None:
            rest.append(item)
            continue
        if epoch is None:
            epoch = epochs.take(connection, min(sum(capacity), len(items)), queue.last_block)
        claim, encoded = claims[n], text(item)
        row = (*work_row(item, born[item.work_id], encoded), epoch + 1, claim.worker, claim.until, queue.last_place + 1)
        if connection.execute(_SQL["put_leased_work"], row).rowcount:
            epoch += 1
            capacity[n] -= 1
            leases[n].append(Lease(_decode_work(encoded), epoch, 1, claim.until, claim.worker))
        else:
            rest.append(item)
    return tuple(map(tuple, leases)), rest


def _first_match(item: WorkItem, claims: Sequence[Claim], capacity: Sequence[int], first: int) -> int | None:
    for n in range(first, len(claims)):
        claim = claims[n]
        matches = item.pool in claim.pools and item.available_at <= claim.now
        if capacity[n] and matches and (not item.requires or set(item.requires).issubset(claim.tags)):
            return n
    return None


def _lease_oldest(connection: sqlite3.Connection, claims: Sequence[Claim], epochs: Epochs) -> Leases:
    """Lease the oldest work; consecutive claims for the same pools and tags at once."""
    connection.execute(_SQL["ripen_work"], (claims[0].now,))
    leases = []
    for (pools, tags, is_for_idle), group in groupby(claims, attrgetter("pools", "tags", "is_for_idle")):
        alike = list(group)
        most = sum([max(claim.most, 0) for claim in alike])
        found = _find_oldest(connection, pools, tags, _HEAD if is_for_idle else most)
        if is_for_idle:
            found = _of_idle(connection, found, most)
        last_block = connection.execute(_SQL["last_epoch"]).fetchone()
        epoch = epochs.take(connection, len(found), last_block) if found else 0
        rows, following = [], iter(found)
        for claim in alike:
            taken = []
            for _, _, _, number, attempts, encoded, *_ in islice(following, max(claim.most, 0)):
                epoch += 1
                rows.append((epoch, claim.worker, claim.until, number))
                taken.append(Lease(_decode_work(encoded), epoch, attempts + 1, claim.until, claim.worker))
            leases.append(tuple(taken))
        connection.executemany(_SQL["lease_work"], rows)
    return tuple(leases)


def _lease_limited(connection: sqlite3.Connection, claims: Sequence[Claim], epochs: Epochs) -> Leases:
    """Lease the oldest work that the limits of the server allow, claim by claim."""
    connection.execute(_SQL["ripen_work"], (claims[0].now,))
    rows = connection.execute(_SQL["work_limits"]).fetchall()
    leased = [names_in(names) for names, _, count in rows for _ in range(count)]
    room = Room(claims[0].limits, leased)
    leases = []
    for claim in claims:
        found = _find_allowed(connection, claim, room)
        last_block = connection.execute(_SQL["last_epoch"]).fetchone()
        first = epochs.take(connection, len(found), last_block) + 1 if found else 0
        numbered = list(enumerate(found, first))
        changes = [(epoch, claim.worker, claim.until, row[3]) for epoch, row in numbered]
        connection.executemany(_SQL["lease_work"], changes)
        made = [Lease(_decode_work(row[5]), epoch, row[4] + 1, claim.until, claim.worker) for epoch, row in numbered]
        leases.append(tuple(made))
    return tuple(leases)


def _find_allowed(connection: sqlite3.Connection, claim: Claim, room: Room) -> list[Any]:
    most, orders = _HEAD if claim.is_for_idle else max(claim.most, 0), []
    for pool in dict.fromkeys(claim.pools):
        for requires in _covered(connection, pool, claim.tags):
            limits: str | None = ""
            while limits is not None:
                if room.has(names_in(limits)):  # work of a limit that is reached costs one look at the index
                    keys = (pool, requires, limits, most)
                    orders.append(connection.execute(_SQL["find_limited_work"], keys).fetchall())
                limits = connection.execute(_SQL["next_limits"], (pool, requires, limits)).fetchone()[0]
    ordered: Iterable[Any] = merge(*orders, key=lambda row: (-row[0], row[1], row[2]))
    if claim.is_for_idle:
        return _of_idle(connection, ordered, max(claim.most, 0), lambda row: room.take(names_in(row[6])))
    return list(islice((row for row in ordered if room.take(names_in(row[6]))), most))


def _of_idle(
    connection: sqlite3.Connection, rows: Iterable[Any], most: int, takes: Callable[[Any], bool] = lambda _: True
) -> list[Any]:
    """Choose one row of each playbook that has no work leased."""
    busy = {playbook_of(flow) for (flow,) in connection.execute(_SQL["leased_flows"])}
    chosen: list[Any] = []
    for row in rows:
        playbook = playbook_of(row[-1])
        if len(chosen) < most and playbook not in busy and takes(row):
            busy.add(playbook)
            chosen.append(row)
    return chosen


def _find_oldest(connection: sqlite3.Connection, pools: Sequence[str], tags: Sequence[str], most: int) -> list[Any]:
    orders = [
        connection.execute(_SQL["find_work"], (pool, requires, most)).fetchall()
        for pool in dict.fromkeys(pools)
        for requires in _covered(connection, pool, tags)
    ]
    return list(islice(merge(*orders, key=lambda row: (-row[0], row[1], row[2])), most))


def _covered(connection: sqlite3.Connection, pool: str, tags: Sequence[str]) -> Iterator[str]:
    """Yield each combination of required tags that tags cover: one index seek each."""
    yield ""
    found = "" if tags else None
    while found is not None:
        found = connection.execute(_SQL["next_requires"], (pool, found)).fetchone()[0]
        if found is not None and set(_decode(found)).issubset(tags):
            yield found
