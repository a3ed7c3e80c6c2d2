"""PostgreSQL: a step is one transaction; concurrent operations are isolated."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import asyncpg
import psycopg
import pytest

from noetl.ports import Claim
from noetl.ports.outbox import OutboxMessage
from noetl.server.control_plane import LocalControlPlane
from noetl.stores.common.queries import queries
from noetl.stores.postgres.database import connect
from noetl.stores.postgres.outbox import PostgresOutbox
from noetl.stores.postgres.store import PostgresStore
from tests.conformance.commits import commit, put, signal, work
from tests.databases import fresh_database
from tests.unit.server.system import RealClock, begin, chain, ended, register, workers

pytestmark = pytest.mark.asyncio
STEPS = 50
MANY = 400


def transactions(address: str) -> int:
    """Return how many transactions have written so far: each takes the next number."""
    with psycopg.connect(address, autocommit=True) as connection:
        [number] = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone() or (0,)
        return int(number)


async def test_a_sequential_step_is_one_transaction() -> None:
    """The start leases the first step; each report's transaction leases the next."""
    address = fresh_database()
    store = PostgresStore(address)
    try:
        async with LocalControlPlane(store, RealClock(), snapshot_every=1_000_000) as control, workers(control):
            playbook = await register(store, chain(STEPS))
            await ended(control, store, await begin(control, playbook))  # everything is prepared, a worker waits
            before = transactions(address)
            row = await ended(control, store, await begin(control, playbook))
            assert row["status"] == "completed"
            assert transactions(address) - before == 1 + STEPS
    finally:
        await store.close()


async def test_expiring_disowned_leases_leaves_the_next_work_alone() -> None:
    """A worker lists its leases during its report: the new work keeps its lease."""
    address = fresh_database()
    store, connection = PostgresStore(address), await connect(address)
    try:
        claim = Claim("one", ("",), 1, 1, 90_000)
        await store.commit([put(work("a"), work("b"))], [claim, claim])
        report = connection.transaction()
        await report.start()
        await connection.execute(
            "WITH gone AS (DELETE FROM queue WHERE node_id = '1:a' RETURNING *)"
            " INSERT INTO queue (execution_id, node_id, action, context, status, worker_id, lease_until, epoch)"
            " SELECT execution_id, '1:c', action, context, status, worker_id, lease_until, epoch + 9 FROM gone"
        )
        taking = asyncio.create_task(store.disown("one", [], 5))
        while not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"):
            await asyncio.sleep(0)
        await report.commit()
        assert await taking == 1
        rows = await connection.fetch("SELECT node_id, to_ms(lease_until) FROM queue ORDER BY node_id")
        assert [tuple(row) for row in rows] == [("1:b", 5), ("1:c", 90_000)]
    finally:
        await store.close()
        await connection.close()


async def test_no_more_messages_are_claimed_than_wanted_whatever_the_plan() -> None:
    address = fresh_database()
    store, connection = PostgresStore(address), await connect(address)
    try:
        outbox = PostgresOutbox(store.database)
        for key in "abc":
            await outbox.put(OutboxMessage(key), 10)
        for name in ("hashjoin", "mergejoin", "hashagg", "sort", "material"):
            await connection.execute(f"SET enable_{name} = off")
        assert len(await connection.fetch(queries("postgres")["claim_outbox"], 20, 30, 1)) == 1
    finally:
        await connection.close()
        await store.close()


async def test_a_long_queue_does_not_slow_down_what_is_queued_next() -> None:
    """The rank of new work is looked up in a queue that the planner takes for empty."""
    address = fresh_database("long_queue")  # without what the tests before deleted
    store = PostgresStore(address)
    await store.commit([put(work("a"), work("b"))])
    await store.close()
    admin = await connect(address)
    try:
        fill = """INSERT INTO queue (node_id, action, context, execution_id, flow, rank, pool, priority)
            SELECT 'more ' || n, action, context, execution_id, flow, n, pool, priority
            FROM queue, generate_series(1, 5000) AS n WHERE node_id = (SELECT min(node_id) FROM queue)"""
        await admin.execute(fill)
        assert await _rows_read(admin) < 10
    finally:
        await admin.close()


async def _rows_read(admin: asyncpg.Connection[asyncpg.Record]) -> int:
    """Count the rows and index entries that the look-up of a rank reads."""
    counted = """SELECT sum(pg_stat_get_xact_tuples_returned(oid)) FROM pg_class
        WHERE oid = 'queue'::regclass OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'queue'::regclass)"""
    last = "SELECT json_build_object('pool', pool, 'priority', priority, 'flow', flow, 'distance', 1, 'behind', 0) FROM queue WHERE rank = 5000"
    item = await admin.fetchval(last)
    next_rank = "SELECT (next_ranks(ARRAY[json_populate_record(NULL::work_row, $1::json)], false))[1]"
    async with admin.transaction():
        before = int(await admin.fetchval(counted))
        assert await admin.fetchval(next_rank, item) > 5000
        return int(await admin.fetchval(counted)) - before


@pytest.mark.parametrize("short", [(200,), (1, 30, 150, 300)])
async def test_many_flows_are_queued_and_claimed_by_index_with_plans_of_a_short_queue(short: tuple[int, ...]) -> None:
    """Plans are kept: the one of a queue with few rows serves when there are many."""
    address = fresh_database(f"many_flows_{len(short)}")  # without dead rows of another
    store = PostgresStore(address)
    try:
        for number, count in enumerate(short, 1):
            await _queue(store, number, count)
        before = await _rows_read_by(store)
        for number in range(10, 14):
            await _queue(store, number, MANY)
        assert await _rows_read_by(store) - before < 4 * MANY * 6
    finally:
        await store.close()


async def _queue(store: PostgresStore, execution: int, count: int) -> None:
    """Queue new work, each of a flow of its own, and claim some."""
    name = str(execution)
    items = [work(f"w{number}", execution=name, flow=f"{'path/' * 8}{name}#{number}") for number in range(count)]
    receipt = await store.commit([put(*items, execution=name)], [Claim("one", ("",), 10, 1, 90_000)])
    assert receipt.commits[0].status == "applied"


async def _rows_read_by(store: PostgresStore, *tables: str) -> int:
    """Count the rows and index entries of tables that batches have read."""
    counted = """SELECT sum(pg_stat_get_tuples_returned(oid)) FROM pg_class
        WHERE oid = ANY ($1::regclass[]) OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = ANY ($1::regclass[]))"""
    async with store.database.connection(apart=True) as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        return int(await connection.fetchval(counted, tables or ("queue",)))


async def test_commits_read_by_index_with_plans_of_empty_tables() -> None:
    """Plans are kept: those of empty tables serve when there are many rows."""
    tables = ("queue", "timer", "message", "execution")
    address = fresh_database("empty_tables")
    store = PostgresStore(address)
    try:
        await _end(store, await _begin(store, range(1, 11)))
        async with store.database.connection(apart=True) as connection:
            for table in tables:
                await connection.execute(f"ANALYZE {table}")
        for number in range(11, 31):
            await _end(store, await _begin(store, [number]))
        leases = await _begin(store, range(100, 100 + 4 * MANY))
        before = await _rows_read_by(store, *tables)
        for one in list(leases.items())[:50]:
            await _end(store, dict([one]))
        assert await _rows_read_by(store, *tables) - before < 50 * 20
    finally:
        await store.close()


async def _begin(store: PostgresStore, numbers: Iterable[int]) -> dict[str, int]:
    """Begin executions with work, a timer and a message each; return the epochs."""
    begun = [
        commit(name, work=(work("a", execution=name),), timers=(("wake", 5),), inbox=((name, signal(name)),))
        for name in map(str, numbers)
    ]
    receipt = await store.commit(begun, [Claim("one", ("",), len(begun), 1, 90_000)])
    return {lease.work.execution_id: lease.epoch for lease in receipt.leases[0]}


async def _end(store: PostgresStore, epochs: Mapping[str, int]) -> None:
    """End the work of executions, clear their timers and consume their messages."""
    ended = [
        commit(name, 1, finished=((f"{name}:a", epoch),), cleared=("wake",), consumed=(signal(name).message_id,))
        for name, epoch in epochs.items()
    ]
    receipt = await store.commit(ended)
    assert {one.status for one in receipt.commits} == {"applied"}
