"""SQLite file: opening, migrations, where jobs run, and errors."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from noetl.model.errors import InvalidInput, StoreUnavailable
from noetl.stores.common.queries import migrations
from noetl.stores.sqlite.database import Database, connect
from noetl.stores.sqlite.store import SqliteStore
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


async def test_a_new_migration_is_applied_to_new_and_to_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    store = SqliteStore(old)
    await store.commit([commit(projection={"status": "running"})])
    await store.close()
    second = (
        "ALTER TABLE execution ADD COLUMN owner TEXT NOT NULL DEFAULT 'none';\nCREATE TABLE more (x);",
        "0002_more",
    )
    monkeypatch.setattr("noetl.stores.sqlite.database.migrations", lambda dialect: (*migrations(dialect), second))
    shapes = []
    for path in (old, new, old):  # the last one has seen it
        connection = connect(str(path))
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        shapes.append(connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall())
        connection.close()
    assert shapes[0] == shapes[1] == shapes[2]
    connection = connect(str(old))
    assert connection.execute("SELECT execution_id, owner FROM execution").fetchall() == [("1", "none")]
    connection.close()
    monkeypatch.undo()
    with pytest.raises(InvalidInput, match=r"newer version of NoETL \(schema level 2; this version supports 1\)"):
        Database(old)


async def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "noetl.db"
    connect(str(path)).close()
    second = ("CREATE TABLE more (x);\nINSERT INTO nowhere VALUES (1);", "0002_broken")
    monkeypatch.setattr("noetl.stores.sqlite.database.migrations", lambda dialect: (*migrations(dialect), second))
    with pytest.raises(StoreUnavailable, match="nowhere"):
        Database(path)
    monkeypatch.undo()
    connection = connect(str(path))
    assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'more'").fetchall() == []
    connection.close()


async def test_a_file_of_a_development_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "noetl.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 11")
    connection.close()
    with pytest.raises(InvalidInput, match=r"noetl\.db was written by a development version of NoETL .* `--store`"):
        Database(path)


async def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "noetl.db"
    connect(str(path)).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(InvalidInput, match="newer version of NoETL"):
        Database(path)


async def test_a_file_whose_migration_had_another_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "noetl.db"
    connection = connect(str(path))
    connection.execute("UPDATE migration SET hash = 'x'")
    connection.close()
    with pytest.raises(InvalidInput, match=r"`0001_schema` of .*noetl\.db was applied with another text .* Use the"):
        Database(path)


@pytest.mark.parametrize(
    "content", [b"this is a text file, not a database" * 100, b"SQLite format 3\x00" + b"\xff" * 5_000]
)
async def test_a_file_that_is_no_database_is_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "noetl.db"
    path.write_bytes(content)
    with pytest.raises(StoreUnavailable, match=r"noetl\.db"):
        Database(path)


async def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
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


async def test_a_cancelled_commit_is_completed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    writing = asyncio.ensure_future(store.commit([commit(count=100)]))
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    assert len(await store.read("1")) == 100  # it was under way, and was completed
    await store.close()


def _put(connection: sqlite3.Connection) -> int:
    return connection.execute("UPDATE counter SET value = value + 1 WHERE name = 'epoch' RETURNING value").fetchone()[0]  # type: ignore[no-any-return]


def _write_brief(database: Database) -> bool:
    """Return whether a brief write is done on return."""
    return not isinstance(database.write_rows(_put, 1), asyncio.Future)


async def test_a_brief_write_is_done_on_return(tmp_path: Path) -> None:
    database = Database(tmp_path / "noetl.db")
    assert _write_brief(database)
    assert await database.write(_put) == 2
    await database.close()


async def test_a_write_of_few_large_rows_is_flushed_by_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tmp_path / "noetl.db")
    monkeypatch.setattr("noetl.stores.sqlite.database._LARGE_S", -1.0)
    writing = database.write_rows(_put, 1)
    assert isinstance(writing, asyncio.Future)
    assert await writing == 1
    assert await database.write(_put) == 2
    await database.close()


async def test_brief_reads_run_at_once_and_others_in_the_thread(tmp_path: Path) -> None:
    database = Database(tmp_path / "noetl.db")

    def thread_id(_: sqlite3.Connection) -> int:
        return threading.get_ident()

    assert await database.read(thread_id) == threading.get_ident()
    assert await database.run(thread_id) != threading.get_ident()
    before = database.submit(thread_id)
    assert database.try_read(thread_id) == (False, None)
    assert await database.read(thread_id) == await before  # jobs that were queued before come first
    with pytest.raises(StoreUnavailable):
        await database.read(lambda connection: connection.execute("SELECT * FROM nothing"))
    await database.close()
    with pytest.raises(StoreUnavailable):
        await database.read(thread_id)


async def test_a_reader_of_a_long_log_lets_other_tasks_run(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    await store.commit([commit(count=3_000)])
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    for after in range(0, 3_000, 500):
        assert len(await store.read("1", after, 500)) == 500
    assert turns >= 6
    task.cancel()
    await store.close()


async def test_a_brief_write_waits_for_jobs_that_were_queued_before(tmp_path: Path) -> None:
    database, order = Database(tmp_path / "noetl.db"), list[int]()
    queued = database.submit(lambda _: order.append(0))
    pending = [database.write_rows(lambda _, name=name: order.append(name), 1) for name in (1, 2)]  # type: ignore[misc]
    assert all(isinstance(future, asyncio.Future) for future in pending)
    await asyncio.gather(queued, *pending)
    assert order == [0, 1, 2]
    assert _write_brief(database)
    await database.close()


async def test_a_brief_write_waits_in_the_thread_for_another_process(tmp_path: Path) -> None:
    database, other = Database(tmp_path / "noetl.db"), connect(str(tmp_path / "noetl.db"))
    other.execute("BEGIN IMMEDIATE")
    writing = database.write_rows(_put, 1)
    assert isinstance(writing, asyncio.Future)
    await asyncio.sleep(0)
    assert not writing.done()  # and the event loop runs
    other.execute("COMMIT")
    assert await writing == 1
    other.close()
    await database.close()


async def test_a_short_write_runs_here_and_is_flushed_by_the_thread(tmp_path: Path) -> None:
    database, other = Database(tmp_path / "noetl.db"), connect(str(tmp_path / "noetl.db"))
    threads: list[int] = []

    def job(connection: sqlite3.Connection) -> int:
        threads.append(threading.get_ident())
        return _put(connection)

    flushing, following = database.write_rows(job, 100), database.write_rows(_put, 1)
    assert threads == [threading.get_ident()]
    assert isinstance(flushing, asyncio.Future)
    assert isinstance(following, asyncio.Future)  # in the thread, after the flush
    assert [await flushing, await following] == [1, 2]
    assert other.execute("SELECT value FROM counter WHERE name = 'epoch'").fetchone() == (2,)
    other.execute("BEGIN IMMEDIATE")
    writing = database.write_rows(job, 100)
    assert isinstance(writing, asyncio.Future)
    await asyncio.sleep(0)
    assert not writing.done()  # the thread waits for the other process
    other.execute("COMMIT")
    assert await writing == 3
    assert threads[-1] != threading.get_ident()
    other.close()
    await database.close()


@pytest.mark.parametrize("rows", [1, 100, 1_000])
async def test_a_write_that_fails_is_rolled_back(tmp_path: Path, rows: int) -> None:
    database = Database(tmp_path / "noetl.db")

    def job(connection: sqlite3.Connection) -> None:
        _put(connection)
        connection.execute("SELECT * FROM nothing")

    with pytest.raises(StoreUnavailable):
        await cast("Awaitable[None]", database.write_rows(job, rows))
    assert await database.write(_put) == 1
    await database.close()


async def test_a_slow_disk_is_left_to_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(tmp_path / "noetl.db")
    monkeypatch.setattr("noetl.stores.sqlite.database._LONG_S", 0.0)
    monkeypatch.setattr("noetl.stores.sqlite.database._BACKOFF", 1e9)
    assert [_write_brief(database) for _ in range(9)] == [True] * 8 + [False]
    await database.close()


async def test_pages_are_moved_by_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "noetl.db"
    database = Database(path)
    monkeypatch.setattr("noetl.stores.sqlite.database._CHECKPOINT_EVERY", 2)
    before = path.read_bytes()
    assert _write_brief(database)
    assert path.read_bytes() == before
    assert _write_brief(database)
    assert not _write_brief(database)  # the thread has the connection
    await database.run(lambda _: None)
    assert path.read_bytes() != before
    await database.close()


@pytest.mark.parametrize("rows", [1, 100, 1_000])
@pytest.mark.parametrize("replaced", [True, False])
async def test_nothing_is_written_to_a_file_that_is_gone(tmp_path: Path, rows: int, replaced: bool) -> None:
    path = tmp_path / "noetl.db"
    database = Database(path)
    insert = "INSERT INTO message (message_id, execution_id, message) VALUES ('m', '1', '{}')"

    async def write() -> None:
        done = database.write_rows(lambda connection: connection.execute(insert), rows)
        if isinstance(done, asyncio.Future):
            await done

    path.rename(tmp_path / "away.db")
    if replaced:
        path.touch()
    with pytest.raises(StoreUnavailable, match="deleted, moved or replaced"):
        await write()
    path.unlink(missing_ok=True)
    (tmp_path / "away.db").rename(path)
    count = "SELECT count(*) FROM message"
    assert await database.run(lambda connection: connection.execute(count).fetchone()[0]) == 0
    await write()
    assert await database.run(lambda connection: connection.execute(count).fetchone()[0]) == 1
    await database.close()


async def test_an_outage_is_logged_once_and_its_end_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "noetl.db"
    database = Database(path)
    write = "INSERT INTO message (message_id, execution_id, message) VALUES ('m', '1', '{}')"
    path.rename(tmp_path / "away.db")
    with caplog.at_level("INFO"):
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await database.write(lambda connection: connection.execute(write))
            await database.run(lambda connection: connection.execute("SELECT 1").fetchone())
        (tmp_path / "away.db").rename(path)
        await database.write(lambda connection: connection.execute(write))
    await database.close()
    lost, back = caplog.messages
    assert lost.startswith(f"Lost the store {path}; trying again")
    assert back.startswith(f"The store {path} is back after")
