"""The limit of a run: exact counts of transactions, and the bare loop."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from bench.limits import Written, bare_seconds, flush_ms, written
from noetl.stores.sqlite.store import SqliteStore
from tests.conformance.commits import commit


@pytest.mark.asyncio
async def test_transactions_and_bytes_of_a_store_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "noetl.db"
    store = SqliteStore(path)
    await store.commit([commit(count=1)])
    before = written(str(path))
    for number in range(1, 8):
        await store.commit([commit(at=number, count=1)])
    wrote = written(str(path)).since(before)
    await store.close()
    opened = sqlite3.connect(path)
    [size] = opened.execute("SELECT sum(length(events)) FROM event_log WHERE seq > 1").fetchone()
    opened.close()
    assert wrote == Written(7, size)


def test_the_bare_loop_and_the_flush_take_time(tmp_path: Path) -> None:
    assert bare_seconds(str(tmp_path / "noetl.db"), Written(3, 300), str(tmp_path)) > 0
    assert flush_ms(tmp_path, 3) > 0
