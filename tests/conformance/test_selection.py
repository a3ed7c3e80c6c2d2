"""Every store: filters for executions, and the removal of an ended one."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.ports import Selection
from tests.conformance.commits import commit, signal, snapshot_of, work
from tests.conformance.conftest import Place, Store

pytestmark = pytest.mark.asyncio
ROWS: dict[str, dict[str, Any]] = {
    "10": {"status": "completed", "path": "etl/Load", "started_at": 100, "tags": ["nightly", "eu"]},
    "11": {"status": "failed", "path": "etl/load", "started_at": 200, "error": {"message": "No such Table 50%"}},
    "12": {"status": "running", "path": "report", "started_at": 300, "parent": "11", "tags": ["eu-west"]},
    "13": {"status": "running", "path": "etl/load", "started_at": 400, "parent": "10", "error": None},
}


async def ids(store: Store, **given: Any) -> list[str]:
    return [str(row["execution_id"]) for row in await store.executions(Selection(**given))]


async def fill(store: Store) -> None:
    for name, row in ROWS.items():
        await store.commit([commit(name, projection=row)])


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ["13", "12", "11", "10"]),
        ({"limit": 2}, ["13", "12"]),
        ({"before": "12"}, ["11", "10"]),
        ({"before": "99"}, []),
        ({"status": ("running",)}, ["13", "12"]),
        ({"status": ("failed", "completed")}, ["11", "10"]),
        ({"status": ("running",), "before": "13", "limit": 1}, ["12"]),
        ({"path": "etl/load"}, ["13", "11"]),
        ({"path": "etl/load", "status": ("failed",)}, ["11"]),
        ({"parent": "11"}, ["12"]),
        ({"parent": ""}, ["11", "10"]),
        ({"parent": "", "status": ("failed",)}, ["11"]),
        ({"tag": "eu"}, ["10"]),
        ({"without": "eu"}, ["13", "12", "11"]),
        ({"without": "eu", "status": ("failed", "completed")}, ["11"]),
        ({"since": 200}, ["13", "12", "11"]),
        ({"since": 200, "until": 300}, ["11"]),
        ({"text": "LOAD"}, ["13", "11", "10"]),
        ({"text": "eu"}, ["12", "10"]),
        ({"text": "table 50%"}, ["11"]),
        ({"text": "%"}, ["11"]),
        ({"text": "_"}, []),
        ({"text": "12"}, ["12"]),
        ({"within": ("etl/",)}, ["13", "11", "10"]),
        ({"within": ("etl/", "rep"), "limit": 2}, ["13", "12"]),
        ({"within": ("ETL/", "etl/Load%", "e_l/")}, []),
        ({"within": ()}, []),
        ({"text": "etl", "tag": "nightly", "until": 101}, ["10"]),
    ],
)
async def test_executions_are_chosen(store: Store, given: dict[str, Any], found: list[str]) -> None:
    await fill(store)
    assert await ids(store, **given) == found


async def test_what_executions_are_chosen_by_stays_while_their_row_changes(store: Store) -> None:
    await fill(store)
    await store.commit([commit("10", 1)])
    await store.commit([commit("10", 2, projection={**ROWS["10"], "status": "failed", "error": {"message": "late"}})])
    assert await ids(store, path="etl/Load", status=("failed",), tag="eu", text="late") == ["10"]


async def test_an_ended_execution_is_removed_with_everything_beside_it(place: Place) -> None:
    store, other = place.open(), place.open()
    beside: dict[str, Any] = {"timers": (("t", 5),), "inbox": (("1", signal("s")),), "work": (work("a"),)}
    await store.commit([commit("1", projection={"status": "running"}, **beside)])
    await store.commit([commit("10", projection={"status": "running"}, work=(work("a", execution="10"),))])
    await store.save_snapshot("1", 1, 1, b"one")
    assert not await other.remove("1")  # it has not ended
    assert not await other.remove("unknown")
    await store.commit([commit("1", 1, 2, projection={"status": "completed", "ended_at": 7})])
    before = await store.version()
    assert await other.remove("1")
    assert await store.version() != before
    assert not await other.remove("1")
    assert await store.read("1") == []
    assert await store.execution("1") is None
    assert await snapshot_of(store, "1", 1) is None
    assert await store.due(100, 10) == []
    assert await store.inbox(10) == []
    assert [lease.work.execution_id for lease in await store.claim("w", [""], 5, 10, 20)] == ["10"]
    assert await ids(store) == ["10"]
    assert (await store.commit([commit("1", 3)])).commits[0].status == "stale"
    assert (await store.commit([commit("1", 0)])).commits[0].status == "applied"
