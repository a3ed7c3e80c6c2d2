"""Migrations of PostgreSQL: repeatable, concurrent, and differences are found."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import asyncpg
import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import asdict, replace

import noetl.stores
from noetl.model.errors import InvalidInput
from noetl.model.events import CANONICAL, EVENT_TYPES, Event
from noetl.model.ids import snowflake
from noetl.model.messages import Start
from noetl.ports import Claim, Commit
from noetl.server.control_plane import LocalControlPlane
from noetl.stores.common.queries import migrations, queries
from noetl.stores.postgres import migrations as postgres_migrations
from noetl.stores.postgres.database import connect
from noetl.stores.postgres.migrations import bring_up_to_date, differences, make_partitions, shape
from noetl.stores.postgres.store import PostgresStore
from tests.conformance.commits import commit, event, put, work
from tests.databases import fresh_database, server_address
from tests.unit.server.system import RealClock, begin, chain, ended, register, workers

pytestmark = pytest.mark.asyncio
SRC = Path(noetl.stores.__file__).parent.parent
_numbers = count()


@asynccontextmanager
async def empty_database() -> AsyncIterator[str]:
    """Create an empty database and yield its address."""
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


async def test_a_new_migration_is_applied_to_new_and_to_old_databases(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore(address)
    await store.commit([commit(projection={"status": "running"})])
    await store.close()
    second = (
        "ALTER TABLE execution ADD COLUMN owner text NOT NULL DEFAULT 'none'; CREATE TABLE more (x int)",
        "0002_more",
    )
    monkeypatch.setattr(postgres_migrations, "migrations", lambda dialect: (*migrations(dialect), second))
    async with empty_database() as new:
        shapes = []
        for place, count in ((address, 1), (new, 2), (address, 0)):
            connection = await connect(place)
            assert await bring_up_to_date(connection, "x") == count
            assert await differences(connection, "x") == []
            shapes.append(await shape(connection, "noetl"))
            await connection.close()
        assert shapes[0] == shapes[1] == shapes[2]
    connection = await connect(address)
    rows = await connection.fetch("SELECT execution_id, owner FROM execution")
    assert [tuple(row) for row in rows] == [(1, "none")]
    names = [row[0] for row in await connection.fetch("SELECT name FROM migration ORDER BY level")]
    assert names == ["0001_schema", "0002_more"]
    await connection.execute("DROP TABLE more")
    assert await differences(connection, "x") == ["column more.x is missing", "table more is missing"]
    monkeypatch.undo()
    with pytest.raises(InvalidInput, match=r"newer version of NoETL \(schema level 2; this version supports 1\)"):
        await bring_up_to_date(connection, "x")
    await connection.close()


async def test_a_migration_that_fails_changes_nothing(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = await connect(address)
    await bring_up_to_date(connection, "x")
    second = ("CREATE TABLE more (x int); INSERT INTO nowhere VALUES (1)", "0002_broken")
    monkeypatch.setattr(postgres_migrations, "migrations", lambda dialect: (*migrations(dialect), second))
    with pytest.raises(asyncpg.UndefinedTableError):
        await bring_up_to_date(connection, "x")
    monkeypatch.undo()
    assert await differences(connection, "x") == []
    await connection.close()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "UPDATE migration SET name = '0001_first_tables'",
            r"development version of NoETL .* another database, or delete its tables",
        ),
        (
            "ALTER TABLE migration DROP COLUMN hash",
            r"development version of NoETL .* another database, or delete its tables",
        ),
        ("INSERT INTO migration (level, name, hash) VALUES (999, 'of tomorrow', 'x')", "newer version of NoETL"),
        (
            "UPDATE migration SET hash = 'x'",
            "The migration `0001_schema` of PostgreSQL .* was applied with another text .* Use the version",
        ),
    ],
)
async def test_a_database_of_another_version_is_left_alone(address: str, change: str, told: str) -> None:
    connection = await connect(address)
    await bring_up_to_date(connection, "x")
    await connection.execute(change)
    await connection.close()
    store = PostgresStore(address)
    with pytest.raises(InvalidInput, match=told):
        await store.read("1")
    await store.close()


async def test_people_see_a_row_for_each_event() -> None:
    address = fresh_database()
    store, connection = PostgresStore(address), await connect(address)
    odd = {"x": '\0\0a"é', "y": "\\u0000\\\0"}
    full = Event("e.0", "8", 1, "task.done", 5, "worker", "task", "t", "p", "s#1", "r", 7, 2, "ok", 1.5, odd)
    made = [full, event("8", 2, "m", {"n": [1, 2.5]}), event("8", 3, "m", None, 1), event("9", 1, "n")]
    await store.commit([Commit("8", 0, tuple(made[:2])), Commit("8", 2, (made[2],)), Commit("9", 0, (made[3],))])
    rows = await connection.fetch("SELECT * FROM event ORDER BY writer_seq")
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
    assert await differences(connection, "x") == []
    await connection.close()
    for store in stores:
        await store.close()


async def test_a_server_that_waited_for_the_lock_sees_what_the_other_created(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A short migration: the messages of a long one make PostgreSQL refresh the caches of the sessions that wait.
    short = ("CREATE TABLE migration (level integer, name text, hash text)", "0001_schema")
    monkeypatch.setattr(postgres_migrations, "migrations", lambda _: (short,))
    first, second = await connect(address), await connect(address)
    transaction = first.transaction()
    await transaction.start()
    await first.execute(queries("postgres")["lock_migrations"], postgres_migrations.LOCK)
    waiting = asyncio.create_task(bring_up_to_date(second, "x"))
    while not await first.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
        await asyncio.sleep(0.01)
    assert await bring_up_to_date(first, "x") == 1
    await transaction.commit()
    assert await waiting == 0
    await first.close()
    await second.close()


async def test_what_differs_is_reported(address: str) -> None:
    connection = await connect(address)
    assert await differences(connection, "x") == [
        f"the database is at level 0, and this version of NoETL needs level {len(migrations('postgres'))}"
    ]
    await bring_up_to_date(connection, "x")
    await connection.execute(
        "DROP INDEX queue_order; ALTER TABLE timer ADD COLUMN extra text; CREATE TABLE more (x int)"
    )
    await connection.execute("ALTER TABLE execution ALTER COLUMN last_seq TYPE integer")
    found = await differences(connection, "x")
    assert [line for line in found if line.startswith("index")] == ["index queue_order is missing"]
    assert "column timer.extra should not be there" in found
    assert "table more should not be there" in found
    assert "column execution.last_seq is `integer not null p` and should be `bigint not null p`" in found
    await connection.close()


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


STUCK = """\
SELECT execution_id FROM noetl.event_log
WHERE event_type = 'execution_start'
AND execution_id NOT IN (
    SELECT execution_id FROM noetl.event_log
    WHERE event_type = 'execution_completed'
);
"""


async def test_people_find_stuck_executions_and_the_nodes_of_an_execution() -> None:
    address = fresh_database()
    store, admin = PostgresStore(address), await asyncpg.connect(address)
    async with LocalControlPlane(store, RealClock()) as control:
        playbook = await register(store, chain(2))
        done = await begin(control, playbook, payload={"n": 1})
        async with workers(control):
            await ended(control, store, done)
        stuck = await begin(control, playbook)
        assert [row[0] for row in await admin.fetch(STUCK)] == [int(stuck)]
        count = "SELECT COUNT(*) FROM noetl.event_log WHERE execution_id = $1 AND node_name = $2 AND event_type = 'action_completed'"
        assert await admin.fetchval(count, int(done), "s1") == 1
        rows = await admin.fetch(
            "SELECT event_id, event_type, event_name, status, node_id, node_name, node_type, context, result, metadata, timestamp"
            " FROM noetl.event_log WHERE execution_id = $1 ORDER BY seq",
            int(done),
        )
        assert [row["event_id"] for row in rows] == [event.event_id for event in await store.read(done)]
        first, last = rows[0], next(row for row in rows if row["event_name"] == "step.started")
        assert (first["event_type"], first["node_type"], first["node_name"]) == (
            "execution_start",
            "playbook",
            "tests/test",
        )
        assert msgspec.json.decode(first["context"]) == {"n": 1}
        assert (last["event_type"], last["node_type"], last["node_id"], last["node_name"]) == (
            "action_started", "step", "s0#1", "s0",
        )  # fmt: skip
        assert msgspec.json.decode(last["metadata"])["worker"] == "w0"
        child = Start("child", "tests/child", playbook, {}, parent={"execution_id": done, "run_id": "s0#1"})
        await control.submit("4711", child)
        started = await admin.fetchval(
            "SELECT metadata FROM noetl.event_log WHERE execution_id = 4711 AND event_type = 'execution_start'"
        )
        above = msgspec.json.decode(started)
        assert (above["parent_execution_id"], above["parent_step"]) == (done, "s0")
        assert "parent_step" not in msgspec.json.decode(first["metadata"])
        assert first["timestamp"].timestamp() == pytest.approx((await store.read(done))[0].timestamp / 1000)
        kinds = {row["event_type"] for row in rows}
        assert {"action_completed", "execution_completed"} <= kinds <= {*CANONICAL, *EVENT_TYPES}
    await admin.close()
    await store.close()


@pytest.mark.parametrize("name", sorted(queries("postgres")))
async def test_every_statement_fits_the_schema_and_is_used(name: str) -> None:
    connection = await connect(fresh_database())
    await connection.prepare(queries("postgres")[name])
    await connection.close()
    code = "".join(path.read_text() for folder in ("stores", "blobs") for path in (SRC / folder).rglob("*.py"))
    assert f'"{name}"' in code
