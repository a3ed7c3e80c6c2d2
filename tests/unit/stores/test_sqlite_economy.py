"""Counts the statements of a step's commit: the report of its work, its events, and the next work with its lease."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl.ports import Claim
from noetl.stores.sqlite import SqliteStore
from tests.conformance.commits import commit, work

pytestmark = pytest.mark.asyncio


async def test_a_step_takes_one_statement_for_each_event_and_eight_beside_them(tmp_path: Path) -> None:
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
    assert len([text for text in seen if "INTO event_log" in text]) == 7
    # Begin, what it is judged by, the execution's row, the work that ended, is older work due, an epoch, the new work
    # with its lease, commit.
    assert len(seen) == 7 + 8
    await store.close()
