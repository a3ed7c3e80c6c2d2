"""The SQLite file itself: how it is opened, what it survives, and what is said when it cannot be used."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.json import encode

from noetl.model.errors import InvalidInput, StoreUnavailable
from noetl.ports import Selection
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


async def test_a_file_of_the_first_tables_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "noetl.db"
    connection = sqlite3.connect(path)
    for statement in migrations("sqlite")[0]:
        connection.execute(statement)
    item = work("a", priority=2)
    old = [
        ("event_log", ("1", 1, "e1", "ctx.patched", 5, "server", "ctx", "", *[None] * 7, '{"n":1}', 1)),
        ("event_log", ("0", 1, "e2", "ctx.patched", 6, "server", "ctx", "", *[None] * 7, "{}", 1)),
        ("execution", (4, "1", 1, "running", '{"status":"running","path":"a/b","started_at":5,"parent":"0"}')),
        ("queue", (9, item.work_id, "1", "a#1", None, "", 2, 0, "leased", 7, 3, "w", 50, encode(item).decode())),
        ("catalog", ("a/b", 1, "hash", b"text", 5)),
    ]
    for table, values in old:
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
    connection.execute("UPDATE counter SET value = 7")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    store = SqliteStore(path)
    assert [place.event.event_id for place in await store.feed({}, 10)] == ["e1", "e2"]
    assert [event.payload for event in await store.read("1")] == [{"n": 1}]
    [row] = await store.executions(Selection(path="a/b", parent="0", since=5, until=6))
    assert (row["status"], row["last_seq"]) == ("running", 1)
    assert [entry["version"] for entry in await store.entries(None, None, 5)] == [1]
    assert await store.extend("w", [(item.work_id, 7)], 60) == []
    [(lease, exhausted)] = await store.expired(60, 9)
    assert (lease.work, lease.attempt, exhausted) == (item, 3, False)
    [again] = await store.claim("w", [""], 1, 70, 80)
    assert again.epoch == 8
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


def _put(connection: sqlite3.Connection) -> int:
    return connection.execute("UPDATE counter SET value = value + 1 RETURNING value").fetchone()[0]  # type: ignore[no-any-return]


def _at_once(database: Database) -> bool:
    """Tell whether a brief write is done without waiting."""
    writing = database.write(_put, brief=True)
    try:
        writing.send(None)
    except StopIteration:
        return True
    finally:
        writing.close()
    return False


async def test_a_brief_write_is_done_here_and_now(tmp_path: Path) -> None:
    database = Database(tmp_path / "noetl.db")
    assert _at_once(database)
    assert await database.write(_put) == 2
    await database.close()


async def test_brief_reads_are_done_here_and_now_and_others_in_the_thread(tmp_path: Path) -> None:
    database = Database(tmp_path / "noetl.db")

    def where(_: sqlite3.Connection) -> int:
        return threading.get_ident()

    assert await database.run(where, brief=True) == threading.get_ident()
    assert await database.run(where) != threading.get_ident()
    before = asyncio.create_task(database.run(where))
    await asyncio.sleep(0)
    assert await database.run(where, brief=True) == await before  # what was asked before comes first
    with pytest.raises(StoreUnavailable):
        await database.run(lambda connection: connection.execute("SELECT * FROM nothing"), brief=True)
    await database.close()
    with pytest.raises(StoreUnavailable):
        await database.run(where, brief=True)


async def test_whoever_reads_a_long_log_lets_others_have_their_turn(tmp_path: Path) -> None:
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


async def test_a_brief_write_waits_for_what_was_asked_before(tmp_path: Path) -> None:
    database, order = Database(tmp_path / "noetl.db"), []
    asked = [
        asyncio.create_task(database.write(lambda _, name=name: order.append(name), brief=name > 0))  # type: ignore[misc]
        for name in range(3)
    ]
    await asyncio.gather(*asked)
    assert order == [0, 1, 2]
    assert _at_once(database)
    await database.close()


async def test_a_brief_write_waits_for_another_process_in_the_thread(tmp_path: Path) -> None:
    database, other = Database(tmp_path / "noetl.db"), connect(str(tmp_path / "noetl.db"))
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(database.write(_put, brief=True))
    await asyncio.sleep(0)
    assert not writing.done()  # and this loop goes on
    other.execute("COMMIT")
    assert await writing == 1
    other.close()
    await database.close()


async def test_a_short_write_is_done_here_and_flushed_by_the_thread(tmp_path: Path) -> None:
    database, other = Database(tmp_path / "noetl.db"), connect(str(tmp_path / "noetl.db"))
    threads: list[int] = []

    def job(connection: sqlite3.Connection) -> int:
        threads.append(threading.get_ident())
        return _put(connection)

    flushing = database.write(job, short=True)
    flushing.send(None)  # it waits for the thread
    assert threads == [threading.get_ident()]
    assert await database.write(_put, brief=True, short=True) == 2  # comes after it, in the thread
    assert other.execute("SELECT value FROM counter").fetchone() == (2,)
    flushing.close()
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(database.write(job, short=True))
    await asyncio.sleep(0)
    assert not writing.done()  # the thread waits for the other process
    other.execute("COMMIT")
    assert await writing == 3
    assert threads[-1] != threading.get_ident()
    other.close()
    await database.close()


async def test_a_short_write_that_fails_is_undone(tmp_path: Path) -> None:
    database = Database(tmp_path / "noetl.db")

    def job(connection: sqlite3.Connection) -> None:
        _put(connection)
        connection.execute("SELECT * FROM nothing")

    with pytest.raises(StoreUnavailable):
        await database.write(job, short=True)
    assert await database.write(_put, short=True) == 1
    await database.close()


async def test_a_slow_disk_is_left_to_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(tmp_path / "noetl.db")
    monkeypatch.setattr("noetl.stores.database._LONG_S", 0.0)
    monkeypatch.setattr("noetl.stores.database._RESPITE", 1e9)
    assert [_at_once(database) for _ in range(9)] == [True] * 8 + [False]
    await database.close()


async def test_pages_are_moved_by_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "noetl.db"
    database = Database(path)
    monkeypatch.setattr("noetl.stores.database._MOST_BRIEF", 2)
    before = path.read_bytes()
    assert _at_once(database)
    assert path.read_bytes() == before
    assert _at_once(database)
    assert not _at_once(database)  # the thread has the connection
    await database.run(lambda _: None)
    assert path.read_bytes() != before
    await database.close()


@pytest.mark.parametrize(("brief", "short"), [(True, False), (False, True), (False, False)])
@pytest.mark.parametrize("replaced", [True, False])
async def test_nothing_is_written_to_a_file_that_is_not_there_any_more(
    tmp_path: Path, brief: bool, short: bool, replaced: bool
) -> None:
    path = tmp_path / "noetl.db"
    database = Database(path)
    insert = "INSERT INTO message (message_id, execution_id, message) VALUES ('m', '1', '{}')"
    path.rename(tmp_path / "away.db")
    if replaced:
        path.touch()
    with pytest.raises(StoreUnavailable, match="deleted, moved or replaced"):
        await database.write(lambda connection: connection.execute(insert), brief, short)
    path.unlink(missing_ok=True)
    (tmp_path / "away.db").rename(path)
    count = "SELECT count(*) FROM message"
    assert await database.run(lambda connection: connection.execute(count).fetchone()[0]) == 0
    await database.write(lambda connection: connection.execute(insert), brief, short)
    assert await database.run(lambda connection: connection.execute(count).fetchone()[0]) == 1
    await database.close()
