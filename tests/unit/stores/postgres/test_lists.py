"""Lists of executions read an index, and not the whole table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noetl.ports import Selection
from noetl.stores.postgres.database import connect
from noetl.stores.postgres.store import PostgresStore, listing
from tests.conformance.commits import commit
from tests.databases import fresh_database

MANY, FEW = 20_000, 3


def rows_read(node: dict[str, Any]) -> int:
    """Return how many rows the scans of a plan looked at."""
    own = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    below = sum(rows_read(one) for one in node.get("Plans", ()))
    return below + (round(own) if "Scan" in node["Node Type"] else 0)


@pytest.mark.asyncio
async def test_paths_that_begin_alike_are_found_by_their_index() -> None:
    address = fresh_database()
    store, admin = PostgresStore(address), await connect(address)
    for number in range(FEW):  # the oldest ones
        await store.commit([commit(str(number + 1), projection={"status": "completed", "path": f"rare/é{number}"})])
    await admin.execute(
        "INSERT INTO execution (execution_id, last_seq, status, path, tags, started_at, projection) "
        "SELECT 100 + n, 1, 'completed', 'usual/' || n % 50, '{}', 1, '{}' FROM generate_series(1, $1::int) AS n",
        MANY,
    )
    await admin.execute("ANALYZE execution")
    found = await store.executions(Selection(prefix="rare/é"))
    assert [row["path"] for row in found] == ["rare/é2", "rare/é1", "rare/é0"]
    text, values = listing("list_executions", Selection(prefix="rare/"))
    explained = await admin.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", *values)
    plan = json.loads(explained)[0]["Plan"]
    assert "execution_path" in explained
    assert rows_read(plan) <= 2 * FEW
    await admin.close()
    await store.close()


@pytest.mark.asyncio
async def test_a_next_page_is_read_from_its_place() -> None:
    address = fresh_database()
    store, admin = PostgresStore(address), await connect(address)
    await store.version()
    await admin.execute(
        "INSERT INTO execution (execution_id, last_seq, status, path, tags, started_at, projection) "
        """SELECT 100 + n, 1, 'completed', 'team' || n % 40 || '/job', '{}', 1, json_build_object('status', 'completed') """
        "FROM generate_series(1, $1::int) AS n",
        MANY,
    )
    await admin.execute("ANALYZE execution")
    first = await store.executions(Selection(prefix="team7/", limit=10))
    asked = Selection(prefix="team7/", limit=10, before=first[-1]["execution_id"])
    second = [int(row["execution_id"]) for row in await store.executions(asked)]
    assert second == [int(first[-1]["execution_id"]) - 40 * number for number in range(1, 11)]
    place = await admin.fetchval("SELECT number FROM execution WHERE execution_id = $1", int(asked.before or 0))
    text, values = listing("list_executions", asked, {"before": place})
    await admin.execute("SET plan_cache_mode = force_custom_plan")
    assert (
        rows_read(json.loads(await admin.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", *values))[0]["Plan"]) <= 500
    )
    assert await store.executions(Selection(before="1")) == []
    await admin.close()
    await store.close()
