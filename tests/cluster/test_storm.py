"""Every execution ends with its value while PostgreSQL restarts and processes die.

Eight seconds of it, with faults three times as dense, run by default; ten minutes and 5,000 executions under `make chaos`, with a new seed every time, which is
printed with the summary. `NOETL_STORM_SEED=… python -m pytest -m chaos tests/cluster/test_storm.py` blows a storm again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import SystemRandom

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.ledger import Ledger
from tests.cluster.load import loading, told
from tests.cluster.storm import Storm

pytestmark = pytest.mark.asyncio
Tell = Callable[[str, object], None]


async def blow(
    system: Cluster, book: Ledger, seed: int, count: int, seconds: float, tell: Tell, calm: float = 1.0
) -> None:
    with told(system, seed):
        async with loading(system, book) as load:
            storm = Storm(system, load, seed, count, seconds, calm)
            await storm.blow()
            tell("summary", f"storm\n{await storm.hold()}")


async def test_a_short_storm(shaken: Cluster, book: Ledger, record_property: Tell) -> None:
    await blow(shaken, book, 1, 40, 8.0, record_property, calm=0.3)


@pytest.mark.chaos
async def test_ten_minutes_of_storm(shaken: Cluster, book: Ledger, record_property: Tell) -> None:
    seed = int(os.environ.get("NOETL_STORM_SEED") or SystemRandom().randrange(1_000_000))
    await blow(shaken, book, seed, 5_000, 600.0, record_property)
