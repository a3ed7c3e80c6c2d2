"""Cost of a step and an item on SQLite: transactions, rows, bytes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from bench.engine import run
from bench.limits import Written, written
from bench.workloads import chain, loop
from noetl.settings import Settings
from noetl.wiring.embedded import embedded

pytestmark = pytest.mark.asyncio
STEPS, ITEMS = 20, 500


async def spent(folder: Path, text: str) -> tuple[Written, int]:
    """Return the second run's transactions, bytes of events, and events."""
    path = folder / "noetl.db"
    async with embedded(Settings(path)) as app:
        await run(app, text, 0)
        before = written(str(path))
        execution_id, _, _ = await run(app, text, 1)
        wrote = written(str(path)).since(before)
        events = len(await app.store.read(execution_id))
    opened = sqlite3.connect(path)
    assert opened.execute("SELECT count(*) FROM queue").fetchone() == (0,)
    opened.close()
    return wrote, events


async def test_a_step_in_a_row_is_one_transaction_of_seven_events(tmp_path: Path) -> None:
    wrote, events = await spent(tmp_path, chain("bench", STEPS))
    assert wrote.commits == 1 + STEPS  # it starts with the first step, and every report ends one and begins the next
    assert events == 7 + 7 * STEPS
    assert wrote.size <= 1_640 * STEPS  # durations vary by a digit; the versions of what ran are 80 bytes of it


async def test_items_of_a_loop_share_transactions(tmp_path: Path) -> None:
    """The share depends on timing; one each would be a hundred times more."""
    wrote, events = await spent(tmp_path, loop("bench", ITEMS))
    assert wrote.commits <= ITEMS // 10
    assert ITEMS <= events <= 2 * ITEMS
    assert wrote.size <= 450 * ITEMS
