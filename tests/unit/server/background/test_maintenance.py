"""Daily maintenance of a store, retried sooner after a failure."""

from __future__ import annotations

import asyncio

import pytest

from noetl.model.errors import StoreUnavailable
from noetl.server.background.maintenance import run_maintenance
from noetl.stores.postgres.database import connect
from noetl.stores.postgres.store import PostgresStore
from tests.conformance.commits import commit
from tests.databases import fresh_database

pytestmark = pytest.mark.asyncio


class Hurried:
    """Clock whose sleeps return at once; records their lengths."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> int:
        return 0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


async def test_it_is_done_every_day_and_soon_again_after_trouble() -> None:
    clock, done = Hurried(), asyncio.Event()
    calls = 0

    async def tend() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise StoreUnavailable("away")
        if calls == 4:
            done.set()
            await asyncio.Event().wait()

    async with run_maintenance(tend, clock):
        await asyncio.wait_for(done.wait(), 10)
    assert clock.slept == [86_400.0, 86_400.0, 600.0, 86_400.0]


async def test_postgresql_gets_its_months_and_forgets_writers_that_wrote_nothing() -> None:
    address = fresh_database()
    store, other = PostgresStore(address), PostgresStore(address)
    connection = await connect(address)
    try:
        await store.commit([commit("1")])
        await other.version()
        months = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'log'::regclass"
        before = await connection.fetchval(months)
        name = await connection.fetchval(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'log'::regclass"
            " AND inhrelid::regclass::text ~ '[0-9]$' ORDER BY 1 DESC LIMIT 1"
        )
        await connection.execute(f"DROP TABLE {name}")
        await connection.execute("UPDATE writer SET started_at = now() - interval '2 days'")
        await store.tend()
        assert await connection.fetchval(months) == before
        assert list(await store.writers()) == [str(await store.writer())]
        assert await connection.fetchval("SELECT count(*) FROM writer") == 1
        assert (await other.commit([commit("2")])).commits[0].status == "applied"  # it was there after all
        assert len(await store.feed({}, 10)) == 2
    finally:
        await connection.close()
        await store.close()
        await other.close()
