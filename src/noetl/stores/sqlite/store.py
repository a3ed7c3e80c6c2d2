"""Embedded store in one SQLite file.

It holds events, work, timers, messages, snapshots and playbooks. Several processes may use one file: every batch is one
transaction that takes the write lock at its start and is judged inside it. The statements are in sql/sqlite. Tested in
tests/conformance and tests/unit/stores.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from noetl.audit.chain import with_references
from noetl.model.events import Event
from noetl.model.messages import AnyMessage
from noetl.model.work import Lease, Line, WorkItem
from noetl.ports import Audit, Claim, Commit, Position, Receipt, Selection
from noetl.ports.log import OPEN, Recent, SavedState, Timing
from noetl.stores.common.batch import lost
from noetl.stores.common.queries import queries
from noetl.stores.common.work_limits import names_in
from noetl.stores.sqlite.catalog import SqliteCatalog
from noetl.stores.sqlite.commit import commit_batch
from noetl.stores.sqlite.database import Database
from noetl.stores.sqlite.dead_letters import SqliteLetters
from noetl.stores.sqlite.queue import Epochs, is_due, serve
from noetl.stores.sqlite.rows import WITHIN, message_row, projection_of, text, write_audit

_SQL = queries("sqlite")
_decode = msgspec.json.decode
_message = msgspec.json.Decoder(AnyMessage)
_work = msgspec.json.Decoder(WorkItem)
_ALWAYS = 2**62
_TYPE = Event.__struct_fields__.index("event_type")
_LogRow = tuple[int, int, str]  # number of its last event, number of events, the events
_PAGE = 500  # events; reading more takes longer than handing the job to the thread
_CONDITIONS = {
    "path": "path = ?",
    "parent": "parent_id = ?",
    "tag": "EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)",
    "without": "NOT EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)",
    "since": "started_at >= ?",
    "until": "started_at < ?",
    "before": "number < (SELECT number FROM execution WHERE execution_id = ?)",
    "back_to": "number >= (SELECT number FROM execution WHERE execution_id = ?)",
}
_NO_PARENT = "parent_id IS NULL"
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
    """Event log, work queue, catalog and dead letters in one file."""

    def __init__(self, path: Path | str, database: Database | None = None) -> None:
        super().__init__(database or Database(path))
        self._epochs = Epochs()
        self._writer_id: str | None = None  # read on first use
        self._version = 0
        self.clock = self.database.clock

    def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt | Awaitable[Receipt]:
        if not commits:  # looking takes no write lock
            ran, due = self.database.try_read(lambda connection: is_due(connection, claims))
            if ran and not due:
                return Receipt((), ((),) * len(claims))
        return self.database.write_rows(
            lambda connection: commit_batch(connection, commits, claims, self._epochs),
            sum([len(commit.events) for commit in commits]),
        )

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        return _events_of(await self._log_rows("read_events", execution_id, after, limit), after, limit)

    async def save_snapshot(self, execution_id: str, seq: int, version: int, state: bytes) -> None:
        await self._write("put_snapshot", [(execution_id, seq, version, state)])

    async def saved_states(self, execution_ids: Sequence[str], version: int, limit: int) -> list[SavedState]:
        def job(connection: sqlite3.Connection) -> list[tuple[tuple[int, bytes] | None, list[_LogRow]]]:
            found = []
            for execution_id in execution_ids:
                snapshot = connection.execute(_SQL["find_snapshot"], (execution_id, version)).fetchone()
                after = 0 if snapshot is None else snapshot[0]
                found.append((snapshot, _page(connection, "read_events", execution_id, after, limit)))
            return found

        read = await self.database.read(job)
        return [
            SavedState(execution_id, snapshot, _events_of(rows, 0 if snapshot is None else snapshot[0], limit))
            for execution_id, (snapshot, rows) in zip(execution_ids, read, strict=True)
        ]

    async def execution(self, execution_id: str) -> Mapping[str, Any] | None:
        rows = await self._rows("find_execution", execution_id)
        return projection_of(rows[0]) if rows else None

    async def executions(self, selection: Selection) -> list[Mapping[str, Any]]:
        return [projection_of(row) for row in await self._selected("list_executions", selection)]

    async def timings(self, selection: Selection) -> list[Timing]:
        return [Timing(*row) for row in await self._selected("list_timings", selection)]

    async def _selected(self, name: str, selection: Selection) -> list[tuple[Any, ...]]:
        conditions, values = _conditions(selection)
        text = _SQL[name].replace("number > 0", " AND ".join(("number > 0", *conditions)))
        return await self.database.run(lambda connection: connection.execute(text, values).fetchall())

    async def open_counts(self, most: int, within: tuple[str, ...] | None = None) -> Mapping[str, int]:
        query, values = _SQL["open_counts"], list[Any]()
        if within is not None:
            query, values = query.replace("status = ?", f"status = ? AND {WITHIN}"), [text(within)]
        job = {status: (status, *values, most) for status in OPEN}
        return await self.database.run(
            lambda connection: {name: connection.execute(query, given).fetchone()[0] for name, given in job.items()}
        )

    async def recent_counts(
        self, since: int, bucket_ms: int, most: int, within: tuple[str, ...] | None = None
    ) -> Recent:
        names = None if within is None else text(within)
        rows = await self._rows("recent_counts", most, since, bucket_ms, names)
        next_one = await self._rows("oldest_counted", most)
        counts = {(int(bucket), str(status)): int(count) for bucket, status, count in rows}
        return Recent(counts, not next_one or next_one[0][0] < since)

    async def durations(self, path: str, most: int) -> list[int]:
        return [int(row[0]) for row in await self._rows("durations", path, most)]

    async def remove(self, execution_id: str, act: Audit = None) -> bool:
        def job(connection: sqlite3.Connection) -> bool:
            ended = connection.execute(_SQL["has_ended"], (execution_id,)).fetchone()
            if ended is None:
                return False
            for name in _REMOVALS:
                connection.execute(_SQL[name], (execution_id,))
            connection.execute(_SQL["remove_places"])
            write_audit(connection, [with_references(act, f"seq {ended[0]}")])
            return True

        return await self.database.write(job)

    async def writers(self) -> Mapping[str, int]:
        last = (await self._rows("last_written"))[0][0]
        return {await self._writer(): int(last)} if last else {}

    async def feed(self, after: Mapping[str, int], most: int, wanted: Collection[str] | None = None) -> list[Position]:
        writer = await self._writer()
        begin = after.get(writer, 0)
        rows = await self._log_rows("read_feed", "", begin, most)
        if wanted is None:
            return [Position(writer, seq, Event(*fields)) for seq, fields in _events_after(rows, begin)][:most]
        end = next((last for last, size, _ in reversed(rows) if size), 0)
        return [
            Position(writer, seq, Event(*fields))
            for seq, fields in _events_after(_rows_with(rows, wanted, end), begin)
            if fields[_TYPE] in wanted or seq == end
        ]

    async def _log_rows(self, name: str, execution_id: str, after: int, most: int | None) -> list[_LogRow]:
        def job(connection: sqlite3.Connection) -> list[_LogRow]:
            return _page(connection, name, execution_id, after, most)

        is_brief = most is not None and most <= _PAGE
        found = await (self.database.read(job) if is_brief else self.database.run(job))
        if found and found[-1][0] - after >= _PAGE:
            await asyncio.sleep(0)  # a reader of a long log lets other tasks run between pages
        return found

    async def _writer(self) -> str:
        """Return the file's id: one writer, as its lock admits one process at a time."""
        if self._writer_id is None:
            rows = await self._rows("find_writer")
            if not rows:
                await self._write("put_writer", [()])
                rows = await self._rows("find_writer")
            self._writer_id = str(rows[0][0])
        return self._writer_id

    async def version(self) -> int:
        version = await self.database.read(_version)
        if version != self._version:
            self._version = version
            await self.database.read(self.clock.load)
        if self.clock.wants_to_align():
            await self.database.write(self.clock.align)
        return version

    async def probe(self) -> None:
        await self._write("put_probe", [()])

    def check(self) -> None:
        """Verify that the file is still in place. Raises StoreUnavailable."""
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
            rows = [(until, work_id, epoch, worker) for work_id, epoch in held]
            return [row[1] for row in rows if not connection.execute(extend, row).rowcount]

        return await self.database.write(job) if held else []

    async def expired(self, now: int, max_attempts: int, since: int = 0) -> list[tuple[Lease, bool]]:
        def job(connection: sqlite3.Connection) -> list[tuple[Lease, bool]]:
            found = []
            rows = connection.execute(_SQL["expired_leases"], (since, now)).fetchall()
            for number, _, epoch, attempt, worker, until, work in sorted(rows, key=lambda row: (row[5], row[1])):
                lease, exhausted = Lease(_work.decode(work), epoch, attempt, until, worker), attempt >= max_attempts
                connection.execute(_SQL["take_lease_back"], ("dead" if exhausted else "queued", number))
                connection.execute(_SQL["put_message"], message_row(lease.work.execution_id, lost(lease, exhausted)))
                found.append((lease, exhausted))
            return found

        if not await self._rows("expired_leases", since, now):
            return []
        return await self.database.write(job)

    async def expire(self, execution_id: str, now: int) -> int:
        values = (now, execution_id)
        return await self.database.write(lambda connection: connection.execute(_SQL["expire_leases"], values).rowcount)

    async def abandon(self, worker: str, held: Sequence[tuple[str, int]], now: int, until: int) -> int:
        def job(connection: sqlite3.Connection) -> int:
            abandon = _SQL["abandon_lease"]
            return sum(connection.execute(abandon, (now, *lease, worker, until)).rowcount for lease in held)

        return await self.database.write(job) if held else 0

    async def disown(self, worker: str, held: Sequence[tuple[str, int]], now: int) -> int:
        def job(connection: sqlite3.Connection) -> int:
            leased = connection.execute(_SQL["leases_of_worker"], (worker,)).fetchall()
            rest = [(*lease, worker, _ALWAYS) for lease in leased if lease not in held]
            return sum(connection.execute(_SQL["abandon_lease"], (now, *lease)).rowcount for lease in rest)

        return await self.database.write(job)

    async def leased(self, worker: str, until: int) -> list[tuple[str, int]]:
        return [(row[0], row[1]) for row in await self._rows("leases_until", worker, until)]

    async def release(self, held: Sequence[tuple[str, int]], now: int) -> None:
        await self._write("release_lease", [(now, work_id, epoch) for work_id, epoch in held])

    async def age(self, now: int, before: int) -> int:
        values = (now, before)
        return await self.database.write(lambda connection: connection.execute(_SQL["age_work"], values).rowcount)

    async def queued_keys(self) -> list[str]:
        return [row[0] for row in await self._rows("queued_keys")]

    async def queued(self, key: str, most: int) -> list[Mapping[str, Any]]:
        return [projection_of(row) for row in await self._rows("queued_of", key, most)]

    async def holders(self, key: str) -> list[str]:
        return [row[0] for row in await self._rows("holders", key)]

    async def line(self, execution_id: str) -> Line:
        rows = await self._rows("work_ahead", execution_id)
        work, limits = {row[0]: row[2] for row in rows}, {row[0]: names_in(row[1]) for row in rows if row[1]}
        for key, position in await self._rows("place_in_line", execution_id):
            return Line(work, key, position, tuple(await self.holders(key)), limits)
        return Line(work, limits=limits)

    async def turn_at(self, rate: str) -> int:
        return next((int(row[0]) for row in await self._rows("turn_of", rate)), 0)

    async def due(self, now: int, most: int, civil: int | None = None) -> list[tuple[str, str, int]]:
        rows = await self._rows("due_timers", now, most, now if civil is None else civil)
        return [(row[0], row[1], row[2]) for row in rows]

    async def next_time(self, now: int) -> int | None:
        times = [row[0] for row in await self._rows("next_times", now) if row[0] is not None]
        return min(times, default=None)

    async def inbox(self, most: int) -> list[tuple[str, AnyMessage]]:
        return [(row[0], _message.decode(row[1])) for row in await self._rows("read_messages", most)]


def _version(connection: sqlite3.Connection) -> int:
    """Return a number that changes with the commits of other processes."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _rows_with(rows: Sequence[_LogRow], types: Collection[str], end: int) -> list[_LogRow]:
    """Return the rows that may hold these types, and the last; others stay encoded."""
    names = [f'"{name}"' for name in types]
    return [row for row in rows if row[0] == end or any(name in row[2] for name in names)]


def _page(connection: sqlite3.Connection, name: str, execution_id: str, after: int, most: int | None) -> list[_LogRow]:
    """Return the rows of the log that hold the next events."""
    rows, enough = [], _ALWAYS if most is None else after + most
    for row in connection.execute(_SQL[name], (execution_id, after)):
        rows.append(row)
        if row[0] >= enough and row[1]:  # numbers of removed events count too: such a page has fewer events
            break
    return rows


def _events_of(rows: Sequence[_LogRow], after: int, limit: int | None) -> list[Event]:
    found: list[Event] = []
    for last, size, encoded in rows:
        events = [Event(*fields) for fields in _decode(encoded)]
        found += events if last - size >= after else events[after - last :]
    return found if limit is None else found[:limit]


def _events_after(rows: Sequence[_LogRow], after: int) -> Iterator[tuple[int, list[Any]]]:
    for last, size, encoded in rows:
        for seq, fields in enumerate(_decode(encoded), last - size + 1):
            if seq > after:
                yield seq, fields


def _conditions(selection: Selection) -> tuple[list[str], list[Any]]:
    """Return the conditions of a selection and their values, followed by the limit."""
    asked = {name: getattr(selection, name) for name in _CONDITIONS}
    conditions = [_NO_PARENT] if asked["parent"] == "" else []
    asked = {name: value for name, value in asked.items() if value is not None and (name != "parent" or value)}
    conditions += [_CONDITIONS[name] for name in asked]
    values = list(asked.values())
    if selection.status:
        conditions.append(f"status IN ({', '.join('?' * len(selection.status))})")
        values += selection.status
    if selection.prefix is not None:
        conditions.append("path >= ? AND path < ? || char(1114111)")
        values += [selection.prefix, selection.prefix]
    if selection.ids is not None:
        conditions.append("execution_id IN (SELECT value FROM json_each(?))")
        values.append(text(selection.ids))
    if selection.needs_signal is not None:
        conditions.append(
            f"status IN ({', '.join(map(repr, OPEN))}) AND coalesce(json_extract(projection, '$.needs_signal'), 0) = ?"
        )
        values.append(int(selection.needs_signal))
    if selection.within is not None:
        conditions.append(WITHIN)
        values.append(text(selection.within))
    if selection.text is not None:
        conditions.append(f"({' OR '.join(_TEXTS)})")
        values += [selection.text.lower()] * len(_TEXTS)
    return conditions, [*values, selection.limit]
