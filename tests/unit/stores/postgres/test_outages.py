"""Outages of PostgreSQL: clear errors, nothing lost, recovery without restart."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from signal import SIGINT, SIGQUIT, Signals

import asyncpg
import pytest

from noetl.model.errors import InvalidInput, StoreUnavailable
from noetl.model.ids import snowflake
from noetl.model.messages import Start
from noetl.settings import Settings
from noetl.stores.postgres.database import PostgresDatabase, connect, shown, trouble
from noetl.stores.postgres.store import PostgresStore
from noetl.wiring.embedded import Embedded, embedded
from tests.conformance.commits import commit, event
from tests.services import PostgresServer, postgres_server
from tests.unit.server.system import RealClock, chain, register

pytestmark = pytest.mark.asyncio
STEPS, MANY = 12, 12


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        yield started


async def again(server: PostgresServer, **settings: str) -> None:
    """Restart a server while the tasks of this process go on."""
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, server.stop)
    await loop.run_in_executor(None, lambda: server.start(**settings))


async def test_a_stopped_server_is_told_and_found_again(server: PostgresServer) -> None:
    store = PostgresStore(server.address())
    await store.commit([commit("1")])
    server.stop()
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=r"PostgreSQL 127\.0\.0\.1:\d+/postgres is unavailable"):
            await store.commit([commit("1", 1)])
        with pytest.raises(StoreUnavailable):
            await store.read("1")
    server.start()
    assert (await store.commit([commit("1", 1)])).commits[0].status == "applied"
    assert len(await store.read("1")) == 2
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.read("1")


async def test_a_close_that_is_cancelled_leaves_no_connection(server: PostgresServer) -> None:
    database = PostgresDatabase(server.address())
    async with database.connection() as one, database.connection() as another:
        pass
    closing = asyncio.create_task(database.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert [one.is_closed(), another.is_closed()] == [True, True]


async def test_a_read_only_server_is_told_and_still_read(server: PostgresServer) -> None:
    store = PostgresStore(server.address())
    await store.commit([commit("2")])
    await again(server, default_transaction_read_only="on")
    try:
        assert len(await store.read("2")) == 1
        with pytest.raises(StoreUnavailable, match="read-only"):
            await store.commit([commit("2", 1)])
    finally:
        await again(server)
    assert (await store.commit([commit("2", 1)])).commits[0].status == "applied"
    await store.close()


async def test_too_many_connections_are_told(server: PostgresServer) -> None:
    await again(server, max_connections="6", superuser_reserved_connections="0", max_wal_senders="0")
    try:
        store = PostgresStore(server.address())
        taken = [await connect(server.address()) for _ in range(6)]
        with pytest.raises(StoreUnavailable, match="too many"):
            await store.read("1")
        for connection in taken:
            await connection.close()
        await store.read("1")
        await store.close()
    finally:
        await again(server)


async def test_what_a_database_cannot_hold_is_refused_by_itself(server: PostgresServer) -> None:
    store = PostgresStore(server.address())
    with pytest.raises(InvalidInput, match="cannot store this value"):
        await store.commit([commit("3", message="m", timers=(("a\0b", 1),))])
    with pytest.raises(InvalidInput, match="whole number"):
        await store.commit([commit("three")])
    for odd in ("0003", "99999999999999999999", "", "-1", "٣"):
        assert await store.read(odd) == []
        assert await store.execution(odd) is None
    assert (await store.commit([commit("3", message="m")])).commits[0].status == "applied"
    await store.close()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (asyncpg.DiskFullError("could not extend file"), "its disk is full"),
        (asyncpg.CannotConnectNowError("the database system is starting up"), "starting"),
        (asyncpg.OutOfMemoryError("x"), "out of memory"),
        (asyncpg.DeadlockDetectedError("x"), "conflicts with another transaction"),
        (asyncpg.AdminShutdownError("x"), "stopping"),
        (TimeoutError(), "does not answer"),
        (ConnectionResetError("reset"), "reset"),
    ],
)
async def test_errors_are_explained(error: Exception, words: str) -> None:
    known = trouble("PostgreSQL db/x", error)
    assert isinstance(known, StoreUnavailable)
    assert words in str(known)


async def test_an_address_is_shown_without_its_secret() -> None:
    assert shown("postgresql://ada:pass%20word@db.example:6543/team") == "PostgreSQL db.example:6543/team"
    with pytest.raises(InvalidInput, match="address"):
        await PostgresStore("postgresql://db:notaport/x").read("1")


async def test_a_commit_of_unknown_outcome_is_settled_by_the_log(server: PostgresServer) -> None:
    """The connection dies after the commit: deciding again finds a duplicate."""
    store = PostgresStore(server.address())
    one = commit("4", message="m", timers=(("t", 1),))
    await store.commit([one])
    again = commit("4", 1, message="m", timers=(("t", 2),))
    assert (await store.commit([again])).commits[0].status == "duplicate"
    both = await store.commit([again, commit("5")])
    assert [done.status for done in both.commits] == ["duplicate", "applied"]
    assert [found for found in await store.due(10, 10) if found[0] == "4"] == [("4", "t", 1)]
    assert await store.read("5") == [event("5", 1, "5/0")]
    await store.close()


async def _started(app: Embedded, playbook: str) -> list[str]:
    ids = [snowflake(RealClock().now(), 1, number) for number in range(MANY)]
    for execution_id in ids:
        start = Start(f"start-{execution_id}", "tests/test", playbook, pool="p")
        while True:
            try:
                await app.control.submit(execution_id, start)
                break
            except StoreUnavailable:
                await asyncio.sleep(0.1)
    return list(ids)


@pytest.mark.parametrize("how", [SIGINT, SIGQUIT], ids=["restart", "crash"])
async def test_a_server_that_restarts_under_work_loses_nothing(
    server: PostgresServer, tmp_path: Path, how: Signals
) -> None:
    settings = Settings(tmp_path / "noetl.db", lease_ms=3_000, database=server.address())
    loop = asyncio.get_running_loop()
    async with embedded(settings) as app:
        playbook = await register(app.store, chain(STEPS))
        async with app.run_worker("p"):
            starting = asyncio.create_task(_started(app, playbook))
            for _ in range(2):
                await asyncio.sleep(0.3)
                await loop.run_in_executor(None, server.stop, how)
                await loop.run_in_executor(None, server.start)
            ids = await starting
            async with asyncio.timeout(60):
                while not await _all_ended(app, ids):
                    await asyncio.sleep(0.1)
        for execution_id in ids:
            events = await app.store.read(execution_id)
            assert [found.seq for found in events] == list(range(1, len(events) + 1))
            ends = Counter(found.step_run_id for found in events if found.event_type == "step.done")
            assert ends == {f"s{number}#1": 1 for number in range(STEPS)}
            row = await app.store.execution(execution_id)
            assert row is not None
            assert (row["status"], row["last_seq"]) == ("completed", len(events))
        assert [row for row in await app.store.inbox(100) if row[0] in ids] == []
    admin = await connect(server.address())
    assert await admin.fetchval("SELECT count(*) FROM queue WHERE pool = 'p'") == 0
    await admin.close()


async def _all_ended(app: Embedded, ids: list[str]) -> bool:
    try:
        rows = [await app.store.execution(execution_id) for execution_id in ids]
    except StoreUnavailable:
        return False
    return all(row is not None and row["status"] == "completed" for row in rows)
