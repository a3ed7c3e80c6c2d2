"""Schedules in a SQLite file. Tested in tests/conformance/test_schedules.py."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from noetl.audit.chain import with_references
from noetl.ports.schedules import Firing, Schedule
from noetl.ports.team import Audit
from noetl.stores.common.queries import queries
from noetl.stores.schedules.rows import firing_of, firing_row, schedule_of, schedule_row, tally_of
from noetl.stores.sqlite.database import Database
from noetl.stores.sqlite.rows import namespaces, write_audit

_SQL = queries("sqlite")


class SqliteSchedules:
    """Schedules and firings in the file of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = database.rows
        self._noted = database.noted

    async def add(self, schedule: Schedule, act: Audit = None) -> bool:
        return await self._noted(with_references(act, "", "revision 1"), "put_schedule", *schedule_row(schedule)) > 0

    async def save(self, schedule: Schedule, firings: Sequence[Firing] = (), act: Audit = None) -> bool:
        def job(connection: sqlite3.Connection) -> bool:
            row = (*schedule_row(schedule), schedule.revision)
            if not connection.execute(_SQL["save_schedule"], row).rowcount:
                return False
            connection.executemany(_SQL["put_firing"], map(firing_row, firings))
            was = schedule.revision
            write_audit(connection, [with_references(act, f"revision {was}", f"revision {was + 1}")])
            return True

        return await self._database.write(job)

    async def remove(self, schedule_id: str, act: Audit = None) -> bool:
        def job(connection: sqlite3.Connection) -> bool:
            connection.execute(_SQL["remove_firings"], (schedule_id,))
            row = connection.execute(_SQL["remove_schedule"], (schedule_id,)).fetchone()
            write_audit(connection, [] if row is None else [with_references(act, f"revision {row[0]}")])
            return row is not None

        return await self._database.write(job)

    async def schedule(self, schedule_id: str) -> Schedule | None:
        rows = await self._rows("find_schedule", schedule_id)
        return schedule_of(rows[0]) if rows else None

    async def schedules(
        self,
        *,
        path: str | None = None,
        owner: str | None = None,
        after: str | None = None,
        limit: int = 100,
        within: Sequence[str] | None = None,
    ) -> list[Schedule]:
        rows = await self._rows("list_schedules", path, owner, after, limit, namespaces(within))
        return [schedule_of(row) for row in rows]

    async def due(self, now: int, most: int) -> list[Schedule]:
        return [schedule_of(row) for row in await self._rows("due_schedules", now, most)]

    async def undecided(self, after: tuple[str, int], most: int) -> list[Firing]:
        return [firing_of(row) for row in await self._rows("undecided_firings", *after, most)]

    async def running(self, schedule_id: str) -> list[Firing]:
        return [firing_of(row) for row in await self._rows("running_firings", schedule_id)]

    async def decide(self, firing: Firing) -> bool:
        return await self._noted(None, "decide_firing", *firing_row(firing)) > 0

    async def settle(self) -> int:
        if not await self._rows("ended_firings"):  # looking takes no write lock
            return 0
        return await self._noted(None, "settle_firings")

    async def firings(self, schedule_id: str, before: int | None = None, limit: int = 50) -> list[Firing]:
        return [firing_of(row) for row in await self._rows("list_firings", schedule_id, before, limit)]

    async def tally(self, schedule_id: str) -> dict[str, int]:
        return tally_of(await self._rows("tally_firings", schedule_id))

    async def forget(self, before: int) -> int:
        return await self._noted(None, "forget_firings", before)
