"""What the SQLite store saves: statements of a step's commit, writes of an execution's row, and of the counter of epochs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from noetl.model.work import Lease
from noetl.ports import Claim
from noetl.stores.sqlite import SqliteStore
from tests.conformance.commits import commit, work

pytestmark = pytest.mark.asyncio


async def test_a_step_takes_four_statements(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    claim = Claim("w", ("",), 1, 10, 20)
    first = commit(count=3, work=(work("a"),), projection={"status": "running"})
    [[lease]] = (await store.commit([first], [claim])).leases
    seen: list[str] = []
    await store.database.run(lambda connection: connection.set_trace_callback(seen.append))
    second = commit(
        at=3,
        count=7,
        work=(work("b"),),
        finished=((lease.work.work_id, lease.epoch),),
        projection={"status": "running"},
    )
    [[lease]] = (await store.commit([second], [claim])).leases
    assert lease.work == work("b")
    # Begin, the work that ended becomes the next with its lease, unless older work is due, its events, which are refused
    # where the log is another, commit. The row of the execution is there as it is to be.
    assert len(seen) == 4, seen
    await store.close()


async def test_a_start_takes_six_statements_and_a_last_step_as_many(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    await store.commit([commit("0", work=(work("a", execution="0"),))], [Claim("w", ("",), 1, 10, 20)])  # takes epochs
    seen: list[str] = []
    await store.database.run(lambda connection: connection.set_trace_callback(seen.append))
    claims = [Claim("w", ("",), 1, 10, 20), Claim("v", ("",), 1, 10, 20)]
    begun = commit(count=6, work=(work("a"),), projection={"status": "running"})
    [[lease], _] = (await store.commit([begun], claims)).leases
    # Begin, events, the row of the execution, whether older work is due, the work with its lease, commit.
    assert len(seen) == 6, seen
    seen.clear()
    held = ((lease.work.work_id, lease.epoch),)
    ended = commit(at=6, count=8, finished=held, projection={"status": "completed", "ended_at": 1})
    assert (await store.commit([ended], claims)).leases == ((), ())
    # Begin, events, the work is taken out, the row, whether other work is due for those who ask, commit.
    assert len(seen) == 6, seen
    await store.close()


async def test_whoever_asks_where_nothing_is_due_takes_one_statement(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    seen: list[str] = []
    await store.database.run(lambda connection: connection.set_trace_callback(seen.append))
    assert (await store.commit([], [Claim("w", ("",), 3, 10, 20)])).leases == ((),)
    assert len(seen) == 1, seen
    await store.commit([commit(work=(work("a", available_at=30),))])
    assert (await store.commit([], [Claim("w", ("",), 3, 29, 40)])).leases == ((),)
    [[lease]] = (await store.commit([], [Claim("w", ("",), 3, 30, 40)])).leases
    assert lease.work.step == "a"
    await store.close()


async def test_a_batch_of_steps_takes_four_statements_for_each(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    count = 16
    running = {"status": "running"}
    starts = [
        commit(f"{n}", count=2, work=(work("a", execution=f"{n}"),), projection=running) for n in range(2 * count)
    ]
    claims = [Claim("w", ("",), 1, 10, 20)] * count
    leases = [lease for [lease] in (await store.commit(starts, claims)).leases]
    seen: list[str] = []
    await store.database.run(lambda connection: connection.set_trace_callback(seen.append))
    steps = [
        commit(
            lease.work.execution_id,
            at=2,
            count=7,
            work=(work("b", execution=lease.work.execution_id),),
            finished=((lease.work.work_id, lease.epoch),),
            projection=running,
        )
        for lease in leases
    ]
    following = [lease for [lease] in (await store.commit(steps, claims)).leases]
    assert [lease.work.work_id for lease in following] == [f"{n}:a" for n in range(count, 2 * count)]
    # Of each: its events, its work is taken out, its next work is put in, older work is leased. And of all: begin, whether
    # work is due, work that has come due, the oldest work, commit.
    assert len(seen) == 4 * count + 5, seen
    await store.close()


async def test_epochs_grow_whoever_leases_and_whatever_was_undone(tmp_path: Path) -> None:
    first, second = SqliteStore(tmp_path / "noetl.db"), SqliteStore(tmp_path / "noetl.db")
    await first.commit([commit(count=1, work=tuple(work(name) for name in "abcdefgh"))])
    seen: list[int] = []

    async def lease(store: SqliteStore) -> None:
        [found] = await store.claim("w", [""], 1, 10, 20)
        seen.append(found.epoch)

    await lease(first)
    await lease(first)
    await lease(second)  # a block of its own, after the other one's
    await lease(first)  # its block is not the last any more
    trouble = "CREATE TRIGGER trouble BEFORE UPDATE ON queue BEGIN SELECT RAISE(ABORT, 'no'); END"
    await second.database.run(lambda connection: connection.execute(trouble))
    with pytest.raises(sqlite3.IntegrityError):
        await lease(second)  # takes a block, which is undone
    await second.database.run(lambda connection: connection.execute("DROP TRIGGER trouble"))
    await lease(first)
    await lease(second)
    await lease(first)
    assert seen == sorted(set(seen))
    await first.close()
    await second.close()


async def test_epochs_of_steps_grow_whichever_process_writes_them(tmp_path: Path) -> None:
    stores = {"1": SqliteStore(tmp_path / "noetl.db"), "2": SqliteStore(tmp_path / "noetl.db")}
    claim, running = Claim("w", ("",), 1, 10, 20), {"status": "running"}
    held: dict[str, Lease] = {}
    seen: list[int] = []
    for number in range(300):  # more than a block
        for name, store in stores.items() if number % 100 == 0 else [("1", stores["1"])]:
            ended = ((held[name].work.work_id, held[name].epoch),) if name in held else ()
            at = int(held[name].work.step) + 1 if name in held else 0
            made = commit(name, at, work=(work(f"{at}", execution=name),), finished=ended, projection=running)
            [[held[name]]] = (await store.commit([made], [claim])).leases
            seen.append(held[name].epoch)
    assert seen == sorted(set(seen))
    for store in stores.values():
        await store.close()


async def test_the_row_of_an_execution_is_written_where_it_changes(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    seen: list[str] = []
    await store.commit([commit(count=2, projection={"status": "running"})])
    await store.database.run(lambda connection: connection.set_trace_callback(seen.append))
    await store.commit([commit(at=2, count=2, projection={"status": "running"})])
    assert not [text for text in seen if "INTO execution" in text]
    assert await store.execution("1") == {"execution_id": "1", "last_seq": 4, "status": "running"}
    await store.commit([commit(at=4, count=2, projection={"status": "waiting"})])
    assert len([text for text in seen if "INTO execution" in text]) == 1
    assert await store.execution("1") == {"execution_id": "1", "last_seq": 6, "status": "waiting"}
    await store.close()


async def test_a_row_of_a_commit_that_was_undone_is_not_taken_as_written(tmp_path: Path) -> None:
    first, second = SqliteStore(tmp_path / "noetl.db"), SqliteStore(tmp_path / "noetl.db")
    claim = Claim("w", ("",), 1, 10, 20)
    begun = commit(count=1, work=(work("a"), work("b")), projection={"status": "running"})
    [[one, two]] = (await first.commit([begun], [Claim("w", ("",), 2, 10, 20)])).leases
    trouble = "CREATE TRIGGER trouble BEFORE INSERT ON event_log BEGIN SELECT RAISE(ABORT, 'no'); END"
    await second.database.run(lambda connection: connection.execute(trouble))
    undone = commit(at=1, count=2, finished=((one.work.work_id, one.epoch),), projection={"status": "waiting"})
    with pytest.raises(sqlite3.IntegrityError):
        await first.commit([undone], [claim])
    await second.database.run(lambda connection: connection.execute("DROP TRIGGER trouble"))
    await second.commit([commit(at=1, count=2, message="other", projection={"status": "running"})])
    held = ((two.work.work_id, two.epoch),)
    waiting = {"status": "waiting"}
    await first.commit([commit(at=3, count=2, work=(work("c"),), finished=held, projection=waiting)], [claim])
    assert await second.execution("1") == {"execution_id": "1", "last_seq": 5, **waiting}
    await first.close()
    await second.close()
