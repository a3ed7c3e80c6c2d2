"""How many transactions a step costs on PostgreSQL, counted by the database itself: one."""

from __future__ import annotations

import psycopg
import pytest

from noetl.server.control import LocalControl
from noetl.stores.postgres import PostgresStore
from tests.databases import fresh_database
from tests.unit.server.system import RealClock, begin, chain, ended, register, workers

pytestmark = pytest.mark.asyncio
STEPS = 50


def transactions(address: str) -> int:
    """Give how many transactions have written anything so far: each of them has taken the next number."""
    with psycopg.connect(address, autocommit=True) as connection:
        [number] = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone() or (0,)
        return int(number)


async def test_a_sequential_step_is_one_transaction() -> None:
    """The start hands the first step out; every report ends a step and brings the next one in the same transaction."""
    address = fresh_database()
    store = PostgresStore(address)
    try:
        async with LocalControl(store, RealClock(), snapshot_every=1_000_000) as control, workers(control):
            playbook = await register(store, chain(STEPS))
            await ended(control, store, await begin(control, playbook))  # everything is prepared, a worker waits
            before = transactions(address)
            row = await ended(control, store, await begin(control, playbook))
            assert row["status"] == "completed"
            assert transactions(address) - before == 1 + STEPS
    finally:
        await store.close()
