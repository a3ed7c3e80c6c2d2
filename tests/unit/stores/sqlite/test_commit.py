"""Commits to a SQLite file: durability, and lease epochs across processes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from noetl.model.work import Lease
from noetl.ports import Claim, Receipt
from noetl.stores.sqlite import database
from noetl.stores.sqlite.database import connect
from noetl.stores.sqlite.store import SqliteStore
from tests.conformance.commits import commit, work

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the disk as fast, however busy the machine is."""
    monkeypatch.setattr(database, "_LONG_S", 1e9)


async def test_a_brief_batch_is_durable_on_return(tmp_path: Path) -> None:
    store, other = SqliteStore(tmp_path / "noetl.db"), SqliteStore(tmp_path / "noetl.db")
    receipt = store.commit([commit(count=64)])
    assert isinstance(receipt, Receipt)
    assert await receipt is receipt
    assert len(await other.read("1")) == 64
    await store.close()
    await other.close()


@pytest.mark.parametrize("count", [65, 513])
async def test_a_large_batch_is_awaited_and_later_ones_follow_it(tmp_path: Path, count: int) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    large, brief = store.commit([commit(count=count)]), store.commit([commit(at=count)])
    assert not isinstance(large, Receipt)
    assert not isinstance(brief, Receipt)  # the thread has the file
    assert [(await pending).commits[0].status for pending in (large, brief)] == ["applied", "applied"]
    await store.close()


async def test_a_batch_waits_for_the_lock_of_another_process(tmp_path: Path) -> None:
    store, other = SqliteStore(tmp_path / "noetl.db"), connect(str(tmp_path / "noetl.db"))
    other.execute("BEGIN IMMEDIATE")
    pending = store.commit([commit()])
    assert not isinstance(pending, Receipt)
    other.execute("COMMIT")
    assert (await pending).commits[0].status == "applied"
    other.close()
    await store.close()


async def test_a_claim_that_finds_nothing_takes_no_lock(tmp_path: Path) -> None:
    store, other = SqliteStore(tmp_path / "noetl.db"), connect(str(tmp_path / "noetl.db"))
    await store.commit([commit(work=(work("a", available_at=30),))])
    other.execute("BEGIN IMMEDIATE")
    assert store.commit([], [Claim("w", ("",), 3, 29, 40)]) == Receipt((), ((),))
    other.execute("ROLLBACK")
    [[lease]] = (await store.commit([], [Claim("w", ("",), 3, 30, 40)])).leases
    assert lease.work.step == "a"
    other.close()
    await store.close()


async def test_an_execution_row_that_does_not_change_is_not_written(tmp_path: Path) -> None:
    store, running = SqliteStore(tmp_path / "noetl.db"), {"status": "running"}
    await store.commit([commit(projection=running)])
    trouble = "CREATE TRIGGER trouble BEFORE UPDATE ON execution BEGIN SELECT RAISE(ABORT, 'written'); END"
    await store.database.run(lambda connection: connection.execute(trouble))
    await store.commit([commit(at=1, projection=running)])
    with pytest.raises(sqlite3.IntegrityError, match="written"):
        await store.commit([commit(at=2, projection={"status": "waiting"})])
    assert await store.execution("1") == {"execution_id": "1", "last_seq": 2, **running}
    await store.close()


async def test_epochs_grow_across_processes_and_rollbacks(tmp_path: Path) -> None:
    first, second = SqliteStore(tmp_path / "noetl.db"), SqliteStore(tmp_path / "noetl.db")
    await first.commit([commit(count=1, work=tuple(work(name) for name in "abcdefgh"))])
    seen: list[int] = []

    async def lease(store: SqliteStore) -> None:
        [found] = await store.claim("w", [""], 1, 10, 20)
        seen.append(found.epoch)

    await lease(first)
    await lease(first)
    await lease(second)  # reserves a block after that of the other process
    await lease(first)  # its block is no longer the last one
    trouble = "CREATE TRIGGER trouble BEFORE UPDATE ON queue BEGIN SELECT RAISE(ABORT, 'no'); END"
    await second.database.run(lambda connection: connection.execute(trouble))
    with pytest.raises(sqlite3.IntegrityError):
        await lease(second)  # reserves a block, which is rolled back
    await second.database.run(lambda connection: connection.execute("DROP TRIGGER trouble"))
    await lease(first)
    await lease(second)
    await lease(first)
    assert seen == sorted(set(seen))
    await first.close()
    await second.close()


async def test_epochs_of_new_work_grow_across_processes_and_blocks(tmp_path: Path) -> None:
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
