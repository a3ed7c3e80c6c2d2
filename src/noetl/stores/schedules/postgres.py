"""Schedules in PostgreSQL. Tested in tests/conformance/test_schedules.py."""

from __future__ import annotations

from collections.abc import Sequence

from noetl.audit.chain import with_references
from noetl.ports.schedules import Firing, Schedule
from noetl.ports.team import Audit
from noetl.stores.common.queries import queries
from noetl.stores.postgres.database import PostgresDatabase
from noetl.stores.schedules.rows import firing_of, firing_row, schedule_of, schedule_row, tally_of

_SQL = queries("postgres")


class PostgresSchedules:
    """Schedules and firings in the database of a store."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._rows = database.rows
        self._noted = database.noted

    async def add(self, schedule: Schedule, act: Audit = None) -> bool:
        return bool(await self._noted(with_references(act, "", "revision 1"), "put_schedule", *schedule_row(schedule)))

    async def save(self, schedule: Schedule, firings: Sequence[Firing] = (), act: Audit = None) -> bool:
        async with self._database.transaction() as connection:
            row = (*schedule_row(schedule), schedule.revision)
            if not await connection.fetch(_SQL["save_schedule"], *row):
                return False
            await connection.executemany(_SQL["put_firing"], [firing_row(firing) for firing in firings])
            was = schedule.revision
            await self._database.note(connection, with_references(act, f"revision {was}", f"revision {was + 1}"))
        return True

    async def remove(self, schedule_id: str, act: Audit = None) -> bool:
        rows = await self._noted(act, "remove_schedule", schedule_id, refer=lambda rows: (f"revision {rows[0][0]}", ""))
        return bool(rows)

    async def schedule(self, schedule_id: str) -> Schedule | None:
        rows = await self._rows("find_schedule", schedule_id)
        return schedule_of(tuple(rows[0])) if rows else None

    async def schedules(
        self,
        *,
        path: str | None = None,
        owner: str | None = None,
        after: str | None = None,
        limit: int = 100,
        within: Sequence[str] | None = None,
    ) -> list[Schedule]:
        rows = await self._rows("list_schedules", path, owner, after, limit, within)
        return [schedule_of(tuple(row)) for row in rows]

    async def due(self, now: int, most: int) -> list[Schedule]:
        return [schedule_of(tuple(row)) for row in await self._rows("due_schedules", now, most)]

    async def undecided(self, after: tuple[str, int], most: int) -> list[Firing]:
        return [firing_of(tuple(row)) for row in await self._rows("undecided_firings", *after, most)]

    async def running(self, schedule_id: str) -> list[Firing]:
        return [firing_of(tuple(row)) for row in await self._rows("running_firings", schedule_id)]

    async def decide(self, firing: Firing) -> bool:
        return bool(await self._rows("decide_firing", *firing_row(firing)))

    async def settle(self) -> int:
        return len(await self._rows("settle_firings"))

    async def firings(self, schedule_id: str, before: int | None = None, limit: int = 50) -> list[Firing]:
        return [firing_of(tuple(row)) for row in await self._rows("list_firings", schedule_id, before, limit)]

    async def tally(self, schedule_id: str) -> dict[str, int]:
        return tally_of(await self._rows("tally_firings", schedule_id))

    async def forget(self, before: int) -> int:
        return len(await self._rows("forget_firings", before))
