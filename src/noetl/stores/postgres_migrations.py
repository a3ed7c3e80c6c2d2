"""Brings the tables of a PostgreSQL database up to date, and tells what differs from what they should be.

Several servers may start at once: the work is done under a lock of the database. Tested in
tests/unit/stores/test_postgres_migrations.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl.model.errors import InvalidInput
from noetl.stores.queries import queries, scripts

if TYPE_CHECKING:
    import asyncpg

SCHEMA = "noetl"
_SQL = queries("postgres")
_LOCK = 7_086_823_701
_AHEAD = 3  # months
_PATIENT_S = 86_400.0  # a long log takes its time
_CHECKED = "noetl_check"


async def level_of(connection: asyncpg.Connection) -> int:
    """Give how many migrations a database has seen; 0 where there is nothing."""
    if await connection.fetchval(_SQL["find_table"], f"{SCHEMA}.migration") is None:
        return 0
    return int(await connection.fetchval(_SQL["read_level"]))


async def bring_up_to_date(connection: asyncpg.Connection, name: str) -> int:
    """Make the tables, or change them to today's; gives how many migrations were done."""
    steps = scripts("postgres", "migrations")
    if await level_of(connection) == len(steps):
        return 0
    async with connection.transaction():
        await connection.execute(_SQL["lock_migrations"], _LOCK, timeout=_PATIENT_S)
        level = await level_of(connection)
        if level > len(steps):
            raise InvalidInput(
                f"{name} was written by a newer NoETL (level {level}, this one knows {len(steps)}). Use that version or "
                "another database."
            )
        if level == 0:
            await _make(connection, SCHEMA)
        else:
            for step, _ in steps[level:]:
                await connection.execute(step, timeout=_PATIENT_S)
        rows = [(number, title) for number, (_, title) in enumerate(steps, 1) if number > level]
        await connection.executemany(_SQL["put_migration"], rows)
    return len(steps) - level


async def _make(connection: asyncpg.Connection, schema: str) -> None:
    [(text, _)] = scripts("postgres", "schema.sql")
    await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    await connection.execute(text)


async def make_partitions(connection: asyncpg.Connection) -> int:
    """Make the partitions of the log for the next months; nothing where the database refuses writes."""
    import asyncpg

    try:
        return int(await connection.fetchval(_SQL["make_partitions"], _AHEAD))
    except asyncpg.ReadOnlySQLTransactionError:
        return 0


async def shape(connection: asyncpg.Connection, schema: str) -> dict[str, str]:
    """Give everything that a schema holds, in words."""
    rows = await connection.fetch(_SQL["shape_of_schema"], schema)
    return {row[0]: row[1].replace(f"{schema}.", "").replace(f" SET search_path TO '{schema}'", "") for row in rows}


async def differences(connection: asyncpg.Connection) -> list[str]:
    """Tell what differs from what the tables should be, one sentence each."""
    steps = scripts("postgres", "migrations")
    level = await level_of(connection)
    if level != len(steps):
        return [f"the database is at level {level}, this NoETL needs level {len(steps)}"]
    transaction = connection.transaction()
    await transaction.start()
    try:  # what it should be is made beside it, looked at, and taken back
        await connection.execute(f"SET LOCAL search_path = {_CHECKED}")
        await _make(connection, _CHECKED)
        wanted = await shape(connection, _CHECKED)
        await connection.execute(f"SET LOCAL search_path = {SCHEMA}")
        found = await shape(connection, SCHEMA)
    finally:
        await transaction.rollback()
    told = [f"{key} is missing" for key in sorted(wanted.keys() - found.keys())]
    told += [f"{key} should not be there" for key in sorted(found.keys() - wanted.keys())]
    told += [
        f"{key} is `{found[key]}` and should be `{wanted[key]}`"
        for key in sorted(wanted.keys() & found.keys())
        if wanted[key] != found[key]
    ]
    return told
