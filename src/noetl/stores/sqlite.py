"""The embedded store: events, work, timers, messages, snapshots and playbooks in one SQLite file.

Several processes may use one file: every batch is one transaction that holds the write lock from its start, and checks
there what it was decided on. The statements are in sql/sqlite. Tested in tests/conformance.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from noetl.model.events import Event
from noetl.model.messages import AnyMessage
from noetl.model.work import Lease, WorkItem
from noetl.ports import Act, Claim, Commit, Position, Receipt, Selection
from noetl.stores.audit_sqlite import note
from noetl.stores.batch import Changes, lost
from noetl.stores.catalog_sqlite import SqliteCatalog
from noetl.stores.database import Database
from noetl.stores.letters_sqlite import SqliteLetters
from noetl.stores.queries import queries
from noetl.stores.sqlite_commit import commit_batch, message_row
from noetl.stores.sqlite_queue import Epochs, is_due, serve
from noetl.stores.steps import Written

_SQL = queries("sqlite")
_decode = msgspec.json.decode
_message = msgspec.json.Decoder(AnyMessage)
_work = msgspec.json.Decoder(WorkItem)
_ALWAYS = 2**62
_TYPE = Event.__struct_fields__.index("event_type")
_Row = tuple[int, int, str]  # of the log: the place of its last event, how many it holds, and they themselves
_PAGE = 500  # events that are read in about that time
_BRIEF = 64  # events of a batch that is written in about the time that handing it to a thread takes
_SHORT = 512  # events of a batch that holds nobody up for long, but for the flush
_CONDITIONS = {
    "path": "path = ?",
    "parent": "parent_id = ?",
    "tag": "EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)",
    "since": "started_at >= ?",
    "until": "started_at < ?",
    "before": "number < (SELECT number FROM execution WHERE execution_id = ?)",
}
_TEXTS = (
    "instr(lower(execution_id), ?)",
    "instr(lower(path), ?)",
    "instr(lower(json_extract(projection, '$.error.message')), ?)",
    "EXISTS (SELECT 1 FROM json_each(tags) WHERE instr(lower(value), ?))",
)
_REMOVALS = (
    "keep_last_place",
    "remove_events",
    "remove_execution",
    "remove_work_of",
    "remove_timers_of",
    "remove_messages_of",
    "remove_snapshot",
    "remove_keys_of",
    "remove_letters_of",
)


class SqliteStore(SqliteCatalog, SqliteLetters):
    """An event log, a work queue, a catalog and the dead letters in one file."""

    def __init__(self, path: Path | str, database: Database | None = None) -> None:
        super().__init__(database or Database(path))
        self._epochs = Epochs()
        self._written = Written()
        self._writer_id: str | None = None  # as soon as somebody asked

    def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt | Awaitable[Receipt]:
        """Commit here and now where that is brief; else return an awaitable."""
        if not commits:
            is_there = self.database.read_now(lambda connection: is_due(connection, claims))
            if is_there is None:
                return self._commit_apart(commits, claims, 0)
            if not is_there:
                return Receipt((), ((),) * len(claims))
        count = len(commits[0].events) if len(commits) == 1 else sum([len(commit.events) for commit in commits])
        if count <= _BRIEF:
            done = self.database.write_at_once(lambda connection: self._apply(connection, commits, claims))
            if done is not None:
                return self._noted(done)
        return self._commit_apart(commits, claims, count)

    async def _commit_apart(self, commits: Sequence[Commit], claims: Sequence[Claim], count: int) -> Receipt:
        """Commit with the help of the thread: the file is locked, the disk is slow, or the batch is large."""
        if not commits and not await self.database.run(lambda connection: is_due(connection, claims)):
            return Receipt((), ((),) * len(claims))
        done = await self.database.write(
            lambda connection: self._apply(connection, commits, claims), False, count <= _SHORT
        )
        return self._noted(done)

    def _apply(
        self, connection: sqlite3.Connection, commits: Sequence[Commit], claims: Sequence[Claim]
    ) -> tuple[Receipt, Sequence[Commit] | Changes]:
        """Apply a batch in the transaction that has begun; gives also what is to be noted once it is committed."""
        return commit_batch(connection, commits, claims, self._epochs, self._written)

    def _noted(self, done: tuple[Receipt, Sequence[Commit] | Changes]) -> Receipt:
        receipt, what = done
        if isinstance(what, Changes):
            self._written.note(what)
        else:
            self._written.took(what)
        return receipt

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        found: list[Event] = []
        for last, size, kept in await self._parts("read_events", execution_id, after, limit):
            events = [Event(*fields) for fields in _decode(kept)]
            found += events if last - size >= after else events[after - last :]
        return found if limit is None else found[:limit]

    async def save_snapshot(self, execution_id: str, seq: int, version: int, state: bytes) -> None:
        await self._write("put_snapshot", [(execution_id, seq, version, state)])

    async def snapshot(self, execution_id: str, version: int) -> tuple[int, bytes] | None:
        rows = await self._rows("find_snapshot", execution_id, version)
        return (rows[0][0], rows[0][1]) if rows else None

    async def execution(self, execution_id: str) -> Mapping[str, Any] | None:
        rows = await self._rows("find_execution", execution_id)
        return projection_of(rows[0]) if rows else None

    async def executions(self, selection: Selection) -> list[Mapping[str, Any]]:
        conditions, given = _narrowed(selection)
        text = _SQL["list_executions"].replace("number > 0", " AND ".join(("number > 0", *conditions)))
        rows = await self.database.run(lambda connection: connection.execute(text, given).fetchall())
        return [projection_of(row) for row in rows]

    async def remove(self, execution_id: str, act: Act = None) -> bool:
        def job(connection: sqlite3.Connection) -> bool:
            if connection.execute(_SQL["has_ended"], (execution_id,)).fetchone() is None:
                return False
            for name in _REMOVALS:
                connection.execute(_SQL[name], (execution_id,))
            connection.execute(_SQL["remove_places"])
            note(connection, [act])
            return True

        return await self.database.write(job)

    async def writers(self) -> Mapping[str, int]:
        last = (await self._rows("last_written"))[0][0]
        return {await self._writer(): int(last)} if last else {}

    async def feed(self, after: Mapping[str, int], most: int, wanted: Collection[str] | None = None) -> list[Position]:
        writer = await self._writer()
        begin = after.get(writer, 0)
        rows = await self._parts("read_feed", "", begin, most)
        if wanted is None:
            return [Position(writer, place, Event(*fields)) for place, fields in _placed(rows, begin)][:most]
        end = next((last for last, size, _ in reversed(rows) if size), 0)
        return [
            Position(writer, place, Event(*fields))
            for place, fields in _placed(_naming(rows, wanted, end), begin)
            if fields[_TYPE] in wanted or place == end
        ]

    async def _parts(self, name: str, execution_id: str, after: int, most: int | None) -> list[_Row]:
        """Give rows with `most` events after a place: a row holds its last one's place, and the others count down."""

        def job(connection: sqlite3.Connection) -> list[Any]:
            rows, enough = [], _ALWAYS if most is None else after + most
            for row in connection.execute(_SQL[name], (execution_id, after)):
                rows.append(row)
                if row[0] >= enough and row[1]:  # fewer events than places, where some were removed, are a page too
                    break
            return rows

        found = await self.database.run(job, brief=most is not None and most <= _PAGE)
        if found and found[-1][0] - after >= _PAGE:
            await asyncio.sleep(0)  # whoever reads a long log lets others have their turn
        return found

    async def _writer(self) -> str:
        """Name the file: its lock lets one process commit at a time, so all of them together are one writer."""
        if self._writer_id is None:
            rows = await self._rows("find_writer")
            if not rows:
                await self._write("put_writer", [()])
                rows = await self._rows("find_writer")
            self._writer_id = str(rows[0][0])
        return self._writer_id

    async def version(self) -> int:
        return await self.database.run(lambda connection: _one(connection.execute("PRAGMA data_version")), brief=True)

    def check(self) -> None:
        """Tell whether the file is still there. Raises StoreUnavailable."""
        self.database.check()

    async def close(self) -> None:
        await self.database.close()

    async def claim(
        self, worker: str, pools: Sequence[str], most: int, now: int, until: int, tags: Sequence[str] = ()
    ) -> list[Lease]:
        claim = Claim(worker, tuple(pools), most, now, until, tuple(tags))
        [found] = await self.database.write(lambda connection: serve(connection, [claim], self._epochs))
        return list(found)

    async def extend(self, worker: str, held: Sequence[tuple[str, int]], until: int) -> list[str]:
        def job(connection: sqlite3.Connection) -> list[str]:
            extend = _SQL["extend_lease"]
            given = [(until, work_id, epoch, worker) for work_id, epoch in held]
            return [row[1] for row in given if not connection.execute(extend, row).rowcount]

        return await self.database.write(job) if held else []

    async def expired(self, now: int, max_attempts: int) -> list[tuple[Lease, bool]]:
        def job(connection: sqlite3.Connection) -> list[tuple[Lease, bool]]:
            found = []
            rows = connection.execute(_SQL["expired_leases"], (now,)).fetchall()
            for number, _, epoch, attempt, worker, until, work in sorted(rows, key=lambda row: (row[5], row[1])):
                lease, exhausted = Lease(_work.decode(work), epoch, attempt, until, worker), attempt >= max_attempts
                connection.execute(_SQL["take_lease_back"], ("dead" if exhausted else "queued", number))
                connection.execute(_SQL["put_message"], message_row(lease.work.execution_id, lost(lease, exhausted)))
                found.append((lease, exhausted))
            return found

        if not await self._rows("expired_leases", now):
            return []
        return await self.database.write(job)

    async def expire(self, execution_id: str, now: int) -> int:
        given = (now, execution_id)
        return await self.database.write(lambda connection: connection.execute(_SQL["expire_leases"], given).rowcount)

    async def abandon(self, worker: str, held: Sequence[tuple[str, int]], now: int, until: int) -> int:
        def job(connection: sqlite3.Connection) -> int:
            abandon = _SQL["abandon_lease"]
            return sum(connection.execute(abandon, (now, *one, worker, until)).rowcount for one in held)

        return await self.database.write(job) if held else 0

    async def disown(self, worker: str, held: Sequence[tuple[str, int]], now: int) -> int:
        def job(connection: sqlite3.Connection) -> int:
            leased = connection.execute(_SQL["leases_of_worker"], (worker,)).fetchall()
            rest = [(*one, worker, _ALWAYS) for one in leased if one not in held]
            return sum(connection.execute(_SQL["abandon_lease"], (now, *one)).rowcount for one in rest)

        return await self.database.write(job)

    async def leased(self, worker: str, until: int) -> list[tuple[str, int]]:
        return [(row[0], row[1]) for row in await self._rows("leases_until", worker, until)]

    async def release(self, held: Sequence[tuple[str, int]], now: int) -> None:
        await self._write("release_lease", [(now, work_id, epoch) for work_id, epoch in held])

    async def due(self, now: int, most: int) -> list[tuple[str, str, int]]:
        return [(row[0], row[1], row[2]) for row in await self._rows("due_timers", now, most)]

    async def next_time(self, now: int) -> int | None:
        times = [row[0] for row in await self._rows("next_times", now) if row[0] is not None]
        return min(times, default=None)

    async def inbox(self, most: int) -> list[tuple[str, AnyMessage]]:
        return [(row[0], _message.decode(row[1])) for row in await self._rows("read_messages", most)]


def _naming(rows: Sequence[_Row], types: Collection[str], end: int) -> list[_Row]:
    """Give the rows that name some types of events, and the one at the end; others need no reading."""
    names, found = [f'"{name}"' for name in types], []
    for row in rows:
        text = row[2]
        for name in names:
            if name in text:
                found.append(row)
                break
        else:
            if row[0] == end:
                found.append(row)
    return found


def _placed(rows: Sequence[_Row], after: int) -> Iterator[tuple[int, list[Any]]]:
    """Give the fields of events after a place, each with its own."""
    for last, size, kept in rows:
        for place, fields in enumerate(_decode(kept), last - size + 1):
            if place > after:
                yield place, fields


def _one(cursor: sqlite3.Cursor) -> int:
    row = cursor.fetchone()
    return 0 if row is None else int(row[0])


def _narrowed(selection: Selection) -> tuple[list[str], list[Any]]:
    """Give the conditions that are asked for, and what they are given."""
    asked = [(_CONDITIONS[name], getattr(selection, name)) for name in _CONDITIONS]
    conditions = [condition for condition, value in asked if value is not None]
    given = [value for _, value in asked if value is not None]
    if selection.status:
        conditions.append(f"status IN ({', '.join('?' * len(selection.status))})")
        given += selection.status
    if selection.text is not None:
        conditions.append(f"({' OR '.join(_TEXTS)})")
        given += [selection.text.lower()] * len(_TEXTS)
    return conditions, [*given, selection.limit]


def projection_of(row: Any) -> dict[str, Any]:
    return {**_decode(row[2]), "execution_id": row[0], "last_seq": row[1] or 0}
