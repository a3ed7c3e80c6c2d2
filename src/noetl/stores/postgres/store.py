"""Store for a team, in one PostgreSQL database.

It holds events, work, timers, messages, snapshots and playbooks. Any number of servers may use one database: every
batch is one transaction that verifies the facts it was decided on. The statements are in sql/postgres. Tested in
tests/conformance and tests/unit/stores/postgres/test_*.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from noetl.audit.chain import with_references
from noetl.clock import SteadyClock, uptime
from noetl.model.events import Event
from noetl.model.messages import AnyMessage
from noetl.model.work import Lease, Line
from noetl.ports import Audit, Claim, Commit, Position, Receipt, Selection
from noetl.ports.log import OPEN, Recent, SavedState, Timing
from noetl.stores.common.batch import lost
from noetl.stores.common.queries import queries
from noetl.stores.common.work_limits import names_in
from noetl.stores.postgres.catalog import PostgresCatalog
from noetl.stores.postgres.commit import Claims, commit_batch, new_writer
from noetl.stores.postgres.database import PostgresDatabase, columns
from noetl.stores.postgres.dead_letters import PostgresLetters
from noetl.stores.postgres.migrations import make_partitions
from noetl.stores.postgres.rows import (
    WITHIN,
    events_of,
    expired_of,
    message_of,
    message_row,
    number,
    numbered,
    positions_of,
    projection_of,
    saved_states_of,
)

if TYPE_CHECKING:
    import asyncpg

_SQL = queries("postgres")
_RARE = 2_000  # executions with a tag that are sorted rather than searched for
_CONDITIONS = {
    "path": "path = {}",
    "parent": "parent = {}",
    "tag": "tags @> ARRAY[{}::text]",
    "without": "NOT tags @> ARRAY[{}::text]",
    "since": "started_at >= {}",
    "until": "started_at < {}",
    "before": "number < {}",
    "back_to": "number >= {}",
    "prefix": "path >= {0}::text AND path < {0}::text || chr(1114111)",
    "ids": "execution_id = ANY ({}::bigint[])",
    "needs_signal": f"status IN {OPEN} AND coalesce((projection ->> 'needs_signal')::boolean, false) = {{}}",
    "status": "status = ANY ({}::text[])",
    "one_status": "status = {}",
    "within": WITHIN,
    "text": (
        '(position({0} IN execution_id::text) > 0 OR position({0} IN lower(path COLLATE "C")) > 0'
        ' OR position({0} IN lower(error COLLATE "C")) > 0'
        ' OR EXISTS (SELECT FROM unnest(tags) AS t (tag) WHERE position({0} IN lower(t.tag COLLATE "C")) > 0))'
    ),
}


class PostgresStore(PostgresCatalog, PostgresLetters):
    """Event log, work queue, catalog and dead letters in one database."""

    def __init__(self, url: str) -> None:
        super().__init__(PostgresDatabase(url))
        self.clock = SteadyClock("the database's clock")
        self._writer: int | None = None
        self._registering = asyncio.Lock()

    async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
        if commits:
            return await commit_batch(self.database, await self.writer(), commits, claims)
        return Receipt((), await self._claim(claims))  # a claim that finds nothing writes nothing

    async def writer(self) -> int:
        """Return the number of this writer; it is new at every start."""
        if self._writer is not None:
            return self._writer
        async with self._registering:
            found: int | None = self._writer  # another task may have registered it
            if found is None:
                found = self._writer = await new_writer(self.database)
            return found

    @asynccontextmanager
    async def _changing_transaction(self) -> AsyncIterator[asyncpg.Connection]:
        """Open a transaction that other processes notice as a change."""
        writer = await self.writer()
        async with self.database.transaction() as connection:
            await connection.execute(_SQL["note_change"], writer)
            yield connection

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        found = number(execution_id)
        if found is None:
            return []
        return events_of(execution_id, await self.database.rows("read_events", found, after, limit), after, limit)

    async def save_snapshot(self, execution_id: str, seq: int, version: int, state: bytes) -> None:
        await self.database.rows("put_snapshot", numbered(execution_id), seq, version, state)

    async def saved_states(self, execution_ids: Sequence[str], version: int, limit: int) -> list[SavedState]:
        numbers = [found for found in map(number, execution_ids) if found is not None]
        rows = await self.database.rows("read_saved_states", numbers, version, limit)
        return saved_states_of(execution_ids, rows, limit)

    async def execution(self, execution_id: str) -> Mapping[str, Any] | None:
        rows = await self.database.rows("find_execution", number(execution_id))
        return projection_of(rows[0]) if rows else None

    async def executions(self, selection: Selection) -> list[Mapping[str, Any]]:
        return [projection_of(row) for row in await self._selected("list_executions", selection)]

    async def timings(self, selection: Selection) -> list[Timing]:
        return [Timing(*row) for row in await self._selected("list_timings", selection)]

    async def _selected(self, name: str, selection: Selection) -> list[asyncpg.Record]:
        async with self.database.connection() as connection, connection.transaction(readonly=True):
            await connection.execute(_SQL["plan_for_values"])
            bounds = {}  # looked up first: the planner does not know what a query within the query gives
            for bound in ("before", "back_to"):
                if (execution_id := getattr(selection, bound)) is not None:
                    bounds[bound] = await connection.fetchval(_SQL["place_of"], number(execution_id))
            if None in bounds.values():
                return []
            text, values = listing(name, selection, bounds)
            if selection.tag is not None:
                tagged = await connection.fetchval(_SQL["count_tagged"], selection.tag, _RARE)
                if tagged < _RARE:  # the planner does not know how rare a tag is, and would read all rows by age
                    text = text.replace("ORDER BY number", "ORDER BY number + 0")
            rows: list[asyncpg.Record] = await connection.fetch(text, *values)
            return rows

    async def open_counts(self, most: int, within: tuple[str, ...] | None = None) -> Mapping[str, int]:
        names = None if within is None else list(within)
        return {status: int(await self.database.value("open_counts", status, most, names)) for status in OPEN}

    async def recent_counts(
        self, since: int, bucket_ms: int, most: int, within: tuple[str, ...] | None = None
    ) -> Recent:
        names = None if within is None else list(within)
        rows = await self.database.rows("recent_counts", most, since, bucket_ms, names)
        next_one = await self.database.rows("oldest_counted", most)
        counts = {(int(row[0]), str(row[1])): int(row[2]) for row in rows}
        return Recent(counts, not next_one or next_one[0][0] < since)

    async def durations(self, path: str, most: int) -> list[int]:
        return [int(row[0]) for row in await self.database.rows("durations", path, most)]

    async def remove(self, execution_id: str, act: Audit = None) -> bool:
        async with self._changing_transaction() as connection:
            rows = await connection.fetch(_SQL["remove_execution"], number(execution_id))
            await self.database.note(connection, with_references(act, f"seq {rows[0][0]}") if rows else None)
            return bool(rows)

    async def writers(self) -> Mapping[str, int]:
        return {row[0]: row[1] for row in await self.database.rows("list_writers")}

    async def feed(self, after: Mapping[str, int], most: int, wanted: Collection[str] | None = None) -> list[Position]:
        seen = [(writer, seq) for name, seq in after.items() if (writer := number(name)) is not None]
        like = None if wanted is None else [f'%"{name}"%' for name in wanted]
        return positions_of(await self.database.rows("read_feed", *columns(seen, 2), most, like), most, wanted)

    async def version(self) -> int:
        writer, asked = await self.writer(), uptime()
        [(commits, now)] = await self.database.rows("foreign_commits", writer)
        self.clock.follow(asked, now)
        return int(commits)

    async def probe(self) -> None:
        await self.database.rows("put_probe")

    async def tend(self) -> None:
        """Create the log's next partitions and delete writers without events, daily."""
        writer = await self.writer()
        async with self.database.connection() as connection:
            await make_partitions(connection)
            await connection.execute(_SQL["remove_writers"], writer)

    async def close(self) -> None:
        await self.database.close()

    async def claim(
        self, worker: str, pools: Sequence[str], most: int, now: int, until: int, tags: Sequence[str] = ()
    ) -> list[Lease]:
        claim = Claim(worker, tuple(pools), most, now, until, tuple(tags))
        return list((await self._claim([claim]))[0])

    async def _claim(self, claims: Sequence[Claim]) -> tuple[tuple[Lease, ...], ...]:
        grouped = Claims(claims)
        return grouped.leases(await self.database.rows("claim_work", grouped.rows()))

    async def extend(self, worker: str, held: Sequence[tuple[str, int]], until: int) -> list[str]:
        if not held:
            return []
        rows = await self.database.rows("extend_leases", *columns(held, 2), worker, until)
        kept = {row[0] for row in rows}
        return [work_id for work_id, _ in held if work_id not in kept]

    async def expired(self, now: int, max_attempts: int, since: int = 0) -> list[tuple[Lease, bool]]:
        if not await self.database.value("any_expired", now, since):
            return []
        async with self._changing_transaction() as connection:
            found = expired_of(await connection.fetch(_SQL["take_leases_back"], now, max_attempts, since), max_attempts)
            messages = [message_row(lease.work.execution_id, lost(lease, dead)) for lease, dead in found]
            await connection.execute(_SQL["put_messages"], *columns(messages, 3))
        return found

    async def expire(self, execution_id: str, now: int) -> int:
        return len(await self.database.rows("expire_leases", number(execution_id), now))

    async def abandon(self, worker: str, held: Sequence[tuple[str, int]], now: int, until: int) -> int:
        return len(await self.database.rows("abandon_leases", *columns(held, 2), worker, now, until)) if held else 0

    async def disown(self, worker: str, held: Sequence[tuple[str, int]], now: int) -> int:
        return len(await self.database.rows("disown_leases", *columns(held, 2), worker, now))

    async def leased(self, worker: str, until: int) -> list[tuple[str, int]]:
        return [(row[0], row[1]) for row in await self.database.rows("leases_until", worker, until)]

    async def release(self, held: Sequence[tuple[str, int]], now: int) -> None:
        if not held:
            return
        async with self._changing_transaction() as connection:
            await connection.execute(_SQL["release_leases"], *columns(held, 2), now)

    async def age(self, now: int, before: int) -> int:
        return len(await self.database.rows("age_work", now, before))

    async def queued_keys(self) -> list[str]:
        return [row[0] for row in await self.database.rows("queued_keys")]

    async def queued(self, key: str, most: int) -> list[Mapping[str, Any]]:
        return [projection_of(row) for row in await self.database.rows("queued_of", key, most)]

    async def holders(self, key: str) -> list[str]:
        return [row[0] for row in await self.database.rows("holders", [key])]

    async def line(self, execution_id: str) -> Line:
        rows = await self.database.rows("work_ahead", number(execution_id))
        work, limits = {row[0]: row[2] for row in rows}, {row[0]: names_in(row[1]) for row in rows if row[1]}
        for key, position in await self.database.rows("place_in_line", number(execution_id)):
            return Line(work, key, position, tuple(await self.holders(key)), limits)
        return Line(work, limits=limits)

    async def turn_at(self, rate: str) -> int:
        return next((int(row[1]) for row in await self.database.rows("turns_of", [rate])), 0)

    async def due(self, now: int, most: int, civil: int | None = None) -> list[tuple[str, str, int]]:
        rows = await self.database.rows("due_timers", now, most, now if civil is None else civil)
        return [(row[0], row[1], row[2]) for row in rows]

    async def next_time(self, now: int) -> int | None:
        found = await self.database.value("next_time", now)
        return None if found is None else int(found)

    async def inbox(self, most: int) -> list[tuple[str, AnyMessage]]:
        return [message_of(row) for row in await self.database.rows("read_messages", most)]


def listing(name: str, selection: Selection, bounds: Mapping[str, int] = {}) -> tuple[str, list[Any]]:
    """Return a statement that lists executions, and its values.

    `bounds` are the places of the executions that the selection names.
    """
    conditions, values = _conditions(selection, bounds)
    return _SQL[name].replace("number > 0", " AND ".join(("number > 0", *conditions))), [selection.limit, *values]


def _conditions(selection: Selection, bounds: Mapping[str, int]) -> tuple[list[str], list[Any]]:
    """Return the conditions of a selection and their values, after the limit."""
    asked = {name: getattr(selection, name) for name in _CONDITIONS if name != "one_status"} | {**bounds}
    asked["status"] = list(selection.status) if len(selection.status) > 1 else None
    asked["one_status"] = selection.status[0] if len(selection.status) == 1 else None  # its index is in order of age
    if selection.ids is not None:
        asked["ids"] = [found for name in selection.ids if (found := number(name)) is not None]
    if selection.text is not None:
        asked["text"] = selection.text.encode().lower().decode()  # ASCII letters only
    conditions = ["parent IS NULL"] if asked["parent"] == "" else []
    values = {name: value for name, value in asked.items() if value is not None and (name != "parent" or value)}
    conditions += [_CONDITIONS[name].format(f"${place}") for place, name in enumerate(values, 2)]
    return conditions, list(values.values())
