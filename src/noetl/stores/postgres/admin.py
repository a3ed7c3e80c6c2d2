"""Administer a store. Tested in tests/unit/stores/postgres/test_admin.py."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from noetl.model.errors import InvalidInput, StoreUnavailable
from noetl.model.ids import snowflake
from noetl.stores.common.queries import invariants, queries
from noetl.stores.postgres.archive import write_archive
from noetl.stores.postgres.database import connect, shown, trouble
from noetl.stores.postgres.migrations import bring_up_to_date, differences, level_of, make_partitions
from noetl.stores.postgres.rows import events_in

if TYPE_CHECKING:
    import asyncpg

_SQL = queries("postgres")
_TIMEOUT_S = 3_600.0
_PRUNED = ("prune_execution", "prune_snapshot", "prune_timer", "prune_message", "prune_queue", "prune_dlq")


class PostgresAdmin:
    """Administers one database; every operation opens a connection."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._name = shown(url)

    async def init(self) -> bool:
        """Create the database and its tables; return False if both existed."""
        created = await self._create_database()
        return bool(await self.migrate()) or created

    async def migrate(self) -> int:
        """Apply pending migrations; return how many."""
        async with self._connected() as connection:
            done = await bring_up_to_date(connection, self._name)
            await make_partitions(connection)
            return done

    async def check(self) -> list[str]:
        """Return the differences between the tables and what they should be."""
        async with self._connected() as connection:
            return await differences(connection, self._name)

    async def violations(self) -> list[str]:
        """Return violated invariants as sentences, of one snapshot; servers may run."""
        async with self._connected() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
            return [
                f"execution {row[0]}: {row[1]} ({what})"
                for what, statement in invariants("postgres").items()
                for row in await connection.fetch(statement)
            ]

    async def prune(self, before: int, archive: Path | None) -> list[str]:
        """Delete, and optionally archive, months whose executions have all ended.

        Only months of executions that started before `before`. Returns one sentence per month. A month is dropped in
        the transaction that verifies and archives it.
        """
        results = []
        async with self._connected() as connection:
            if not await level_of(connection, self._name):
                raise InvalidInput(f"{self._name} has no tables of NoETL. Create them with `noetl db init`.")
            last = int(snowflake(before, 0, 0))
            for name, first, after in await connection.fetch(_SQL["list_partitions"]):
                if after <= last:
                    results.append(await self._prune(connection, name, first, after, archive))
        return results

    async def _prune(
        self, connection: asyncpg.Connection, name: str, first: int, after: int, archive: Path | None
    ) -> str:
        async with connection.transaction():
            await connection.execute(_SQL["lock_range"], first, after)
            open_ones = await connection.fetchval(_SQL["count_open"], first, after)
            if open_ones:
                return f"{name} stays: {open_ones} of its executions have not ended"
            forks = await self._forks(connection, first, after)
            if forks:
                return f"{name} stays: execution {forks[0]}, which has not ended, was forked from one of it"
            count = await connection.fetchval(_SQL["count_range"], first, after)
            if archive is not None:
                await write_archive(connection, archive / f"{name}.parquet", first, after)
            await connection.execute(_SQL["drop_partition"], name)
            for statement in _PRUNED:
                await connection.execute(_SQL[statement], first, after)
        place = "" if archive is None else f", archived in {archive / name}.parquet"
        return f"{name} is gone with its {count} executions{place}"

    async def _forks(self, connection: asyncpg.Connection, first: int, after: int) -> list[str]:
        found = []
        for row in await connection.fetch(_SQL["first_events_of_open"]):
            source = (events_in(*row)[0].payload.get("forked_from") or {}).get("execution_id")
            if source is not None and str(source).isdecimal() and first <= int(source) < after:
                found.append(row[0])
        return found

    async def _create_database(self) -> bool:
        name = unquote(urlsplit(self._url).path.lstrip("/"))
        try:
            await (await connect(self._url)).close()
        except StoreUnavailable as error:
            import asyncpg

            if not isinstance(error.__cause__, asyncpg.InvalidCatalogNameError):
                raise
        else:
            return False
        admin = await connect(self._url, database="postgres")
        try:
            quoted = await admin.fetchval("SELECT quote_ident($1)", name)
            await admin.execute(f"CREATE DATABASE {quoted}")
        except asyncpg.PostgresError as error:
            raise InvalidInput(f"the database {name} cannot be created: {error}") from None
        finally:
            await admin.close()
        return True

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[asyncpg.Connection]:
        connection: Any = await connect(self._url, command_timeout=_TIMEOUT_S)
        try:
            yield connection
        except Exception as error:
            known = trouble(self._name, error)
            if known is not None:
                raise known from error
            raise
        finally:
            connection.terminate()
