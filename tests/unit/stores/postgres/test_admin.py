"""`noetl db` creates and checks a database; `noetl admin prune` drops months."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from noetl.model.errors import InvalidInput
from noetl.model.ids import snowflake
from noetl.ports import Commit
from noetl.stores.postgres.admin import PostgresAdmin
from noetl.stores.postgres.archive import read_archive
from noetl.stores.postgres.database import connect
from noetl.stores.postgres.store import PostgresStore
from tests.acceptance.run import noetl
from tests.conformance.commits import commit, event, snapshot_of
from tests.databases import server_address

pytestmark = pytest.mark.asyncio
JANUARY, FEBRUARY, MARCH = 1_735_689_600_000, 1_738_368_000_000, 1_740_787_200_000  # of 2025
ODD = {"text": "a \0 b", "n": 2**70, "deep": [1, {"x": None}]}
ENDED = {"status": "completed", "ended_at": JANUARY + 9}


@pytest_asyncio.fixture
async def address() -> AsyncIterator[str]:
    """Return the address of a database that does not exist yet."""
    server = server_address()
    yield server.rsplit("/", 1)[0] + "/Team%20one"
    admin = await connect(server)
    await admin.execute('DROP DATABASE IF EXISTS "Team one" WITH (FORCE)')
    await admin.close()


@pytest_asyncio.fixture
async def months(address: str) -> AsyncIterator[PostgresStore]:
    """Return a store with two old months, one of them with an open execution."""
    assert await PostgresAdmin(address).init()
    admin = await connect(address)
    for name, first, after in (("2025_01", JANUARY, FEBRUARY), ("2025_02", FEBRUARY, MARCH)):
        limits = f"FROM ({snowflake(first, 0, 0)}) TO ({snowflake(after, 0, 0)})"
        await admin.execute(f"CREATE TABLE event_log_{name} PARTITION OF log FOR VALUES {limits}")
    await admin.close()
    store = PostgresStore(address)
    one, two, late = ids()
    await store.commit([Commit(one, 0, (event(one, 1, payload=ODD), event(one, 2)), projection=ENDED)])
    await store.commit([commit(two, count=3, projection=ENDED), commit(late, projection={"status": "running"})])
    await store.save_snapshot(one, 1, 1, b"state")
    yield store
    await store.close()


def ids() -> tuple[str, str, str]:
    return snowflake(JANUARY + 5, 1, 1), snowflake(JANUARY + 6, 1, 2), snowflake(FEBRUARY + 5, 1, 3)


async def partitions(address: str) -> list[str]:
    admin = await connect(address)
    rows = await admin.fetch("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'log'::regclass")
    await admin.close()
    return [row[0] for row in rows if row[0].startswith("event_log_2025")]


async def test_a_database_is_made_brought_up_to_date_and_checked(address: str) -> None:
    done = noetl("db", "init", "--db", address)
    assert (done.code, done.out) == (0, "database created\n"), done.err
    assert noetl("db", "init", "--db", address).out == "database already exists\n"
    assert noetl("db", "migrate", "--db", address).out == "0 migrations applied\n"
    assert noetl("db", "check", "--db", address, "--deep").code == 0
    for action, said in (("init", '{"made":false}'), ("migrate", '{"migrations":0}'), ("check", '{"differences":[]}')):
        assert noetl("db", action, "--db", address, "--json").out == said + "\n"
    admin = await connect(address)
    await admin.execute("DROP INDEX queue_leases")
    await admin.close()
    done = noetl("db", "check", "--db", address)
    assert (done.code, done.out) == (1, "index queue_leases is missing\n")


async def test_bad_input_is_told_in_a_line(address: str) -> None:
    unknown = noetl("db", "destroy", "--db", address)
    assert (unknown.code, "No such command 'destroy'" in unknown.err) == (2, True)
    for given in (["db", "init", "--db", "mysql://x"], ["db", "check"]):
        done = noetl(*given)
        assert done.code == 2
        assert done.err.startswith("noetl: ")
        assert len(done.err.splitlines()) == 1
    done = noetl("db", "check", "--db", "postgresql://127.0.0.1:1/none")
    assert done.code == 1
    assert "is unavailable" in done.err
    assert noetl("admin", "prune", "--before", "soon", "--db", address).code == 2


async def test_a_month_is_archived_dropped_and_still_replayed(
    address: str, months: PostgresStore, tmp_path: Path
) -> None:
    one, two, late = ids()
    before = {name: await months.read(name) for name in (one, two)}
    done = noetl("admin", "prune", "--before", "2025-03-01", "--archive", str(tmp_path / "old"), "--db", address)
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        f"event_log_2025_01 is gone with its 2 executions, archived in {tmp_path}/old/event_log_2025_01.parquet",
        "event_log_2025_02 stays: 1 of its executions have not ended",
    ]
    assert await partitions(address) == ["event_log_2025_02"]
    assert await months.read(one) == []
    assert await months.execution(one) is None
    assert await snapshot_of(months, one, 1) is None
    assert len(await months.read(late)) == 1
    assert {name: read_archive(tmp_path / "old", name) for name in (one, two)} == before
    shown = noetl("replay", one, "--archive", str(tmp_path / "old" / "event_log_2025_01.parquet"), "--json")
    assert shown.code == 0, shown.err
    assert json.loads(shown.out)["seq"] == 2
    with pytest.raises(InvalidInput, match="no execution 5"):
        read_archive(tmp_path / "old", "5")
    with pytest.raises(InvalidInput, match="no archive"):
        read_archive(tmp_path / "elsewhere", one)
    assert await PostgresAdmin(address).check() == []


async def test_a_month_that_a_live_fork_came_from_stays(address: str, months: PostgresStore) -> None:
    one, _, late = ids()
    fork = snowflake(MARCH, 1, 9)
    payload: dict[str, Any] = {"forked_from": {"execution_id": one, "seq": 1}}
    await months.commit([Commit(fork, 0, (event(fork, 1, payload=payload),), projection={"status": "running"})])
    results = await PostgresAdmin(address).prune(FEBRUARY, None)
    assert results == [f"event_log_2025_01 stays: execution {fork}, which has not ended, was forked from one of it"]
    await months.commit([commit(fork, 1, message="end", projection=ENDED)])
    assert await PostgresAdmin(address).prune(FEBRUARY, None) == ["event_log_2025_01 is gone with its 2 executions"]
    assert await PostgresAdmin(address).prune(FEBRUARY - 1, None) == []
    assert len(await months.read(late)) == 1


async def test_nothing_is_dropped_that_could_not_be_archived(
    address: str, months: PostgresStore, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InvalidInput, match="cannot be written"):
        await PostgresAdmin(address).prune(FEBRUARY, tmp_path / "file")
    assert len(await months.read(ids()[0])) == 2
    assert await partitions(address) == ["event_log_2025_01", "event_log_2025_02"]
