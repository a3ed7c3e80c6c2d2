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
import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import asdict, astuple, replace

import noetl.stores
from noetl.model.errors import InvalidInput
from noetl.model.events import Event
from noetl.model.ids import event_id, snowflake
from noetl.ports import Claim, Commit
from noetl.stores.postgres import PostgresStore
from noetl.stores.postgres_database import connect
from noetl.stores.postgres_migrations import bring_up_to_date, differences, make_partitions, shape
from noetl.stores.queries import queries, scripts
from tests.conformance.commits import commit, event, put, work
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


async def test_a_log_with_a_row_for_each_event_is_kept(address: str) -> None:
    """The tables of before are filled as they were, in a month and beside it, and then brought up to date."""
    steps = scripts("postgres", "migrations")[:9]
    connection = await connect(address)
    await connection.execute("CREATE SCHEMA noetl")
    for text, _ in steps:
        await connection.execute(text)
    await connection.executemany("INSERT INTO migration (level, name) VALUES ($1, $2)", list(enumerate("abcdefghi", 1)))
    await make_partitions(connection)
    month = snowflake(await connection.fetchval("SELECT to_ms(now())"), 1, 1)
    odd = Event(
        event_id("m", 0),
        month,
        1,
        "task.done",
        5,
        "worker",
        "task",
        "t",
        "p",
        "s#1",
        "r",
        7,
        2,
        "ok",
        1.5,
        {"x": "\0é"},
    )
    log = [odd, event(month, 2, "m", {"n": [1, 2.5]}, 1), event("7", 1, "other")]
    for number, one in enumerate(log, 1):
        fields = (*astuple(one)[:15], msgspec.json.encode(one.payload).decode(), one.version)
        marks = ", ".join(f"${place}" for place in range(4, 18))
        await connection.execute(
            f"INSERT INTO event_log VALUES ($2::text::bigint, $3, $1, {marks}, 1, {number})",
            *fields,
        )
        await connection.execute(
            "INSERT INTO execution (execution_id, last_seq, status, path, tags, started_at, projection)"
            " VALUES ($1, $2, 'running', '', '{}', 0, '{}')"
            " ON CONFLICT (execution_id) DO UPDATE SET last_seq = excluded.last_seq",
            int(one.execution_id), one.seq,
        )  # fmt: skip
    await connection.execute("INSERT INTO writer (writer_id, last_seq) VALUES (1, 3); SELECT nextval('writer_number')")
    store = PostgresStore(address)
    assert await store.read(month) == log[:2]
    assert await store.read(month, 1) == log[1:2]
    assert [(one.writer_seq, one.event) for one in await store.feed({}, 9)] == list(enumerate(log, 1))
    receipt = await store.commit([Commit(month, 2, (event(month, 3, "m"),))])
    assert receipt.commits[0].status == "duplicate"
    receipt = await store.commit([commit(month, 2, count=2), commit("7", 1)])
    assert [one.status for one in receipt.commits] == ["applied", "applied"]
    assert [one.seq for one in await store.read(month)] == [1, 2, 3, 4]
    rows = await connection.fetch("SELECT DISTINCT tableoid::regclass::text, execution_id::text FROM log ORDER BY 1")
    held = await connection.fetchval("SELECT 'event_log_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM')")
    assert [tuple(row) for row in rows] == [(held, month), ("event_log_rest", "7")]
    assert await connection.fetch("SELECT FROM pg_class WHERE relname LIKE 'old%'") == []
    assert await differences(connection) == []
    await connection.close()
    await store.close()


async def test_people_see_a_row_for_each_event() -> None:
    address = fresh_database()
    store, connection = PostgresStore(address), await connect(address)
    odd = {"x": '\0\0a"é', "y": "\\u0000\\\0"}
    full = Event("e.0", "8", 1, "task.done", 5, "worker", "task", "t", "p", "s#1", "r", 7, 2, "ok", 1.5, odd)
    made = [full, event("8", 2, "m", {"n": [1, 2.5]}), event("8", 3, "m", None, 1), event("9", 1, "n")]
    await store.commit([Commit("8", 0, tuple(made[:2])), Commit("8", 2, (made[2],)), Commit("9", 0, (made[3],))])
    rows = await connection.fetch("SELECT * FROM event_log ORDER BY writer_seq")
    assert await store.read("8") == made[:3]
    shown = replace(full, payload={name: value.replace("\0", "\ufffd") for name, value in odd.items()})
    for one, row in zip([shown, *made[1:]], rows, strict=True):
        wanted = asdict(one) | {"execution_id": int(one.execution_id)}
        found = dict(row) | {"payload": msgspec.json.decode(row["payload"])}
        assert found == wanted | {"writer_id": rows[0]["writer_id"], "writer_seq": found["writer_seq"]}
    assert [row["writer_seq"] for row in rows] == [1, 2, 3, 4]
    await connection.close()
    await store.close()


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
    found = await connection.fetch("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'log'::regclass")
    assert len([row for row in found if re.fullmatch(r"event_log_\d{4}_\d\d", row[0])]) == 4
    now = await connection.fetchval("SELECT to_ms(now())")
    store = PostgresStore(fresh_database())
    execution_id = snowflake(now, 1, 1)
    await store.commit([commit(execution_id), commit("1")])
    month = await connection.fetchval("SELECT 'event_log_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM')")
    rows = await connection.fetch("SELECT tableoid::regclass::text, execution_id::text FROM log ORDER BY execution_id")
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
