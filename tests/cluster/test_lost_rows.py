"""Servers put back and count rows that were deleted under a running cluster."""

from __future__ import annotations

import asyncio
from random import Random
from typing import LiteralString

import httpx
import psycopg
import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.ledger import Ledger
from tests.cluster.load import loading, told

pytestmark = pytest.mark.asyncio
_LOSSES: tuple[LiteralString, ...] = (
    "DELETE FROM noetl.queue WHERE random() < 0.4",
    "DELETE FROM noetl.timer WHERE random() < 0.4",
    "DELETE FROM noetl.message WHERE message ->> 'type' IN ('Start', 'ChildEnded', 'Collect')",
)


async def lose(database: str, what: LiteralString) -> int:
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        try:
            return (await connection.execute(what)).rowcount
        except psycopg.errors.DeadlockDetected:  # a server held a lock
            return 0


async def counted(system: Cluster) -> float:
    """Return the repairs that the servers count."""
    pages = [httpx.get(f"{server}/metrics", verify=False).text for server in system.servers]
    lines = [
        line for page in pages for line in page.splitlines() if line.startswith("noetl_executions_repaired_total{")
    ]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.chaos) for seed in range(2, 8))])
async def test_executions_end_though_rows_are_lost(shaken: Cluster, book: Ledger, seed: int) -> None:
    chance = Random(seed)
    with told(shaken, seed):
        before = await counted(shaken)
        async with loading(shaken, book) as load:
            lost = 0
            while lost < 10:  # executions may end before that many rows are lost
                starting = asyncio.create_task(load.start(8))
                for _ in range(8):
                    await asyncio.sleep(chance.uniform(0.05, 0.4))
                    lost += await lose(shaken.database, chance.choice(_LOSSES))
                await starting
            await load.hold()
            logs = [await load.clients[0].events(one, types=("execution.repaired",)) for one in load.mixed]
        assert any(logs)
        assert await counted(shaken) - before >= sum(map(len, logs))
