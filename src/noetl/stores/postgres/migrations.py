"""Migrate the tables of a PostgreSQL database, and detect schema drift.

Several servers may start at once: migrations run under a lock of the database. Tested in
tests/unit/stores/postgres/test_migrations.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl.model.errors import InvalidInput
from noetl.stores.common.queries import hash_of, migrations, queries, require_same

if TYPE_CHECKING:
    import asyncpg

SCHEMA = "noetl"
_SQL = queries("postgres")
LOCK = 7_086_823_701
_AHEAD = 3  # months
_TIMEOUT_S = 86_400.0  # migrating a long log takes long
_REFERENCE = "noetl_check"


async def level_of(connection: asyncpg.Connection, name: str) -> int:
    """Count the applied migrations. Raises InvalidInput if they are others."""
    if await connection.fetchval(_SQL["find_table"], SCHEMA, "migration") is None:
        return 0
    rows, steps = await connection.fetch(_SQL["read_migrations"]), migrations("postgres")
    if rows and (rows[0]["name"] != steps[0][1] or not rows[0]["hash"]):
        raise InvalidInput(
            f"{name} was written by a development version of NoETL and cannot be migrated. Use another database, or delete "
            f"its tables (`DROP SCHEMA {SCHEMA} CASCADE`) and run `noetl db init`."
        )
    require_same(name, [row["hash"] for row in rows], steps)
    return len(rows)


async def bring_up_to_date(connection: asyncpg.Connection, name: str) -> int:
    """Apply pending migrations in one transaction; return how many."""
    steps = migrations("postgres")
    if await level_of(connection, name) == len(steps):
        return 0
    async with connection.transaction():
        await connection.execute(_SQL["lock_migrations"], LOCK, timeout=_TIMEOUT_S)
        level = await level_of(connection, name)
        if level > len(steps):
            raise InvalidInput(
                f"{name} was written by a newer version of NoETL (schema level {level}; this version supports {len(steps)}). "
                "Use that version or another database."
            )
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        for number, (text, title) in enumerate(steps[level:], level + 1):
            await connection.execute(text, timeout=_TIMEOUT_S)
            await connection.execute(_SQL["put_migration"], number, title, hash_of(text))
    return len(steps) - level


async def make_partitions(connection: asyncpg.Connection) -> int:
    """Create the log's next partitions, unless this user may only read."""
    import asyncpg

    try:
        return int(await connection.fetchval(_SQL["make_partitions"], _AHEAD))
    except (asyncpg.ReadOnlySQLTransactionError, asyncpg.InsufficientPrivilegeError):
        return 0


async def shape(connection: asyncpg.Connection, schema: str) -> dict[str, str]:
    """Return everything that a schema contains, with its definition."""
    rows = await connection.fetch(_SQL["shape_of_schema"], schema)
    return {row[0]: row[1].replace(f"{schema}.", "").replace(f" SET search_path TO '{schema}'", "") for row in rows}


async def differences(connection: asyncpg.Connection, name: str) -> list[str]:
    """Return differences between tables and migrations, one sentence each."""
    steps = migrations("postgres")
    level = await level_of(connection, name)
    if level != len(steps):
        return [f"the database is at level {level}, and this version of NoETL needs level {len(steps)}"]
    transaction = connection.transaction()
    await transaction.start()
    try:  # the reference is built beside the tables, and rolled back
        await connection.execute(f"CREATE SCHEMA {_REFERENCE}; SET LOCAL search_path = {_REFERENCE}")
        for text, _ in steps:
            await connection.execute(text)
        wanted = await shape(connection, _REFERENCE)
        await connection.execute(f"SET LOCAL search_path = {SCHEMA}")
        found = await shape(connection, SCHEMA)
    finally:
        await transaction.rollback()
    differing = [key for key in sorted(wanted.keys() & found.keys()) if wanted[key] != found[key]]
    return [
        *(f"{key} is missing" for key in sorted(wanted.keys() - found.keys())),
        *(f"{key} should not be there" for key in sorted(found.keys() - wanted.keys())),
        *(f"{key} is `{found[key]}` and should be `{wanted[key]}`" for key in differing),
    ]
