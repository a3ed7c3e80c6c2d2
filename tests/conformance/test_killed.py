"""A process killed while it commits: acknowledged commits are stored, whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from noetl.stores.sqlite.store import SqliteStore
from tests.conformance.commits import commit

pytestmark = pytest.mark.asyncio
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("lines", [1, 2, 7, 23, 60])
async def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "noetl.db"
    command = [sys.executable, "-m", "tests.conformance.writer", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        printed += process.stdout.readlines()
    last, work_id, epoch = (line for line in printed[-1].split())
    store = SqliteStore(path)
    events = await store.read("1")
    count = len(events)
    # The one in flight may be there too, whole.
    assert count in (int(last), int(last) + 3)
    assert [event.seq for event in events] == list(range(1, count + 1))
    assert await store.execution("1") == {"execution_id": "1", "status": "running", "seq": count, "last_seq": count}
    assert len(await store.due(10**9, 10**6)) == len(await store.inbox(10**6)) == count // 3
    [(lease, _)] = await store.expired(10**9, 3)
    if count == int(last):
        assert (lease.work.work_id, lease.epoch) == (work_id, int(epoch))
    else:
        assert lease.work.work_id == f"1:w{last}"
    assert (await store.commit([commit("1", count)])).commits[0].status == "applied"
    await store.close()
