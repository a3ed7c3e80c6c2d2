"""The tables of PostgreSQL: migrations and schema are one, several servers may start at once, differences are told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

import noetl.stores
from noetl.model.errors import InvalidInput
from noetl.model.ids import snowflake
from noetl.ports import Claim
from noetl.stores.postgres import PostgresStore
from noetl.stores.postgres_database import connect
from noetl.stores.postgres_migrations import bring_up_to_date, differences, make_partitions, shape
from noetl.stores.queries import queries, scripts
from tests.conformance.commits import commit, put, work
from tests.databases import fresh_database, server_address

pytestmark = pytest.mark.asyncio
SRC = Path(noetl.stores.__file__).parent.parent
_numbers = count()


@asynccontextmanager
async def empty_database() -> AsyncIterator[str]:
    """Give the address of a database with nothing in it."""
    server, name = server_address(), f"empty_{next(_numbers)}"
    admin = await asyncpg.connect(server)
    try:
        await admin.execute(f"CREATE DATABASE {name}")
        yield server.rsplit("/", 1)[0] + f"/{name}"
    finally:
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await admin.close()


@pytest_asyncio.fixture
async def address() -> AsyncIterator[str]:
    async with empty_database() as found:
        yield found


async def made(address: str, make: Callable[[Any], Any]) -> dict[str, str]:
    connection = await connect(address)
    try:
        await connection.execute("CREATE SCHEMA noetl")
        await make(connection)
        return await shape(connection, "noetl")
    finally:
        await connection.close()


async def test_the_migrations_lead_to_the_schema(address: str) -> None:
    async def by_migrations(connection: Any) -> None:
        for text, _ in scripts("postgres", "migrations"):
            await connection.execute(text)

    async def by_schema(connection: Any) -> None:
        await connection.execute(scripts("postgres", "schema.sql")[0][0])

    step_by_step = await made(address, by_migrations)
    async with empty_database() as other:
        at_once = await made(other, by_schema)
    assert step_by_step == at_once
    assert len(at_once) > 150


async def test_several_servers_start_at_once(address: str) -> None:
    stores = [PostgresStore(address) for _ in range(5)]
    receipts = await asyncio.gather(*(store.commit([commit(str(n))]) for n, store in enumerate(stores, 1)))
    assert [receipt.commits[0].status for receipt in receipts] == ["applied"] * 5
    connection = await connect(address)
    assert await bring_up_to_date(connection, "x") == 0
    assert await differences(connection) == []
    await connection.close()
    for store in stores:
        await store.close()


async def test_what_differs_is_told(address: str) -> None:
    connection = await connect(address)
    assert await differences(connection) == [
        f"the database is at level 0, this NoETL needs level {len(scripts('postgres', 'migrations'))}"
    ]
    await bring_up_to_date(connection, "x")
    await connection.execute(
        "DROP INDEX queue_order; ALTER TABLE timer ADD COLUMN extra text; CREATE TABLE more (x int)"
    )
    await connection.execute("ALTER TABLE execution ALTER COLUMN last_seq TYPE integer")
    told = await differences(connection)
    assert [line for line in told if line.startswith("index")] == ["index queue_order is missing"]
    assert "column timer.extra should not be there" in told
    assert "table more should not be there" in told
    assert "column execution.last_seq is `integer not null p` and should be `bigint not null p`" in told
    await connection.close()


async def test_a_database_of_a_newer_noetl_is_left_alone(address: str) -> None:
    connection = await connect(address)
    await bring_up_to_date(connection, "x")
    await connection.execute("INSERT INTO migration (level, name) VALUES (999, 'of tomorrow')")
    await connection.close()
    store = PostgresStore(address)
    with pytest.raises(InvalidInput, match="newer NoETL"):
        await store.read("1")
    await store.close()


async def test_the_months_to_come_have_their_partitions() -> None:
    connection = await connect(fresh_database())
    await make_partitions(connection)
    assert await make_partitions(connection) == 0
    found = await connection.fetch(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'event_log'::regclass"
    )
    assert len([row for row in found if re.fullmatch(r"event_log_\d{4}_\d\d", row[0])]) == 4
    now = await connection.fetchval("SELECT to_ms(now())")
    store = PostgresStore(fresh_database())
    execution_id = snowflake(now, 1, 1)
    await store.commit([commit(execution_id), commit("1")])
    month = await connection.fetchval("SELECT 'event_log_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM')")
    rows = await connection.fetch(
        "SELECT tableoid::regclass::text, execution_id::text FROM event_log ORDER BY execution_id"
    )
    assert [tuple(row) for row in rows] == [("event_log_rest", "1"), (month, execution_id)]
    await store.close()
    await connection.close()


async def test_the_queries_that_people_watch_the_queue_with() -> None:
    address = fresh_database()
    store = PostgresStore(address)
    await store.commit(
        [put(*(work(name) for name in "abcdef"))], [Claim("one", ("",), 2, 1, 2), Claim("two", ("",), 1, 1, 2)]
    )
    admin = await asyncpg.connect(address)  # no search path: these are run as they are written
    assert await admin.fetchval("SELECT COUNT(*) FROM noetl.queue WHERE status = 'queued'") == 3
    assert await admin.fetchval("SELECT COUNT(*) FROM noetl.queue WHERE status = 'leased'") == 3
    busy = await admin.fetch("SELECT worker_id, COUNT(*) FROM noetl.queue WHERE status = 'leased' GROUP BY worker_id")
    assert {row[0]: row[1] for row in busy} == {"one": 2, "two": 1}
    await admin.execute(
        "UPDATE noetl.queue SET status='queued', worker_id=NULL, lease_until=NULL "
        "WHERE status='leased' AND lease_until < NOW();"
    )
    assert await admin.fetchval("SELECT COUNT(*) FROM noetl.queue WHERE status = 'queued'") == 6
    assert await admin.fetch("SELECT data FROM noetl.workload WHERE execution_id = 1") == []
    await admin.close()
    await store.close()


@pytest.mark.parametrize("name", sorted(queries("postgres")))
async def test_every_statement_fits_the_schema_and_is_used(name: str) -> None:
    connection = await connect(fresh_database())
    await connection.prepare(queries("postgres")[name])
    await connection.close()
    code = "".join(path.read_text() for folder in ("stores", "blobs") for path in (SRC / folder).glob("*.py"))
    assert f'"{name}"' in code
