"""The SQLite file itself: how it is opened, what it survives, and what is said when it cannot be used."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from noetl.model.errors import InvalidInput, StoreUnavailable
from noetl.stores.database import Database, connect
from noetl.stores.queries import migrations
from noetl.stores.sqlite import SqliteStore
from tests.conformance.commits import commit, signal, work

pytestmark = pytest.mark.asyncio


async def test_a_file_is_flushed_with_every_commit(tmp_path: Path) -> None:
    database = Database(tmp_path / "noetl.db")

    def settings(connection: sqlite3.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "user_version")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert await database.run(settings) == ["wal", 2, len(migrations("sqlite"))]
    await database.close()


async def test_an_error_in_the_middle_of_the_transaction_undoes_all_of_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    text = "CREATE TRIGGER trouble BEFORE INSERT ON message BEGIN SELECT raise(ABORT, 'no room'); END"
    await store.database.run(lambda connection: connection.execute(text))
    whole = commit(
        work=(work("a"),), timers=(("t", 1),), projection={"status": "running"}, inbox=(("1", signal("s")),)
    )  # messages are written last
    with pytest.raises(sqlite3.IntegrityError, match="no room"):
        await store.commit([whole])
    assert await store.read("1") == []
    assert await store.execution("1") is None
    assert await store.claim("w", [""], 1, 10, 20) == []
    assert await store.due(10, 10) == []
    await store.database.run(lambda connection: connection.execute("DROP TRIGGER trouble"))
    assert (await store.commit([whole])).commits[0].status == "applied"
    await store.close()


async def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "noetl.db"
    connect(str(path)).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(InvalidInput, match="newer NoETL"):
        Database(path)


@pytest.mark.parametrize(
    "content", [b"this is a text file, not a database" * 100, b"SQLite format 3\x00" + b"\xff" * 5_000]
)
async def test_a_file_that_is_no_database_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "noetl.db"
    path.write_bytes(content)
    with pytest.raises(StoreUnavailable, match=r"noetl\.db"):
        Database(path)


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="nowhere"):
        Database(tmp_path / "nowhere" / "noetl.db")


async def test_many_may_make_a_file_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: Database(tmp_path / "noetl.db"), range(8)))
    for database in made:
        await database.close()


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    await store.commit([commit()])
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.read("1")


async def test_whoever_gives_up_waiting_disturbs_nobody(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    writing = asyncio.create_task(store.commit([commit()]))
    await asyncio.sleep(0)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    assert len(await store.read("1")) == 1  # it was under way, and went through
    await store.close()
