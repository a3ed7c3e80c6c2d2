"""Refused deliveries: the first at once, the others together, one entry a minute."""

from __future__ import annotations

import pytest

from noetl.ports import AuditEntry
from noetl.server.operations.refused_deliveries import EVERY_MS, RefusedDeliveries
from noetl.stores.memory.store import MemoryStore
from noetl.stores.memory.team import MemoryTeam

pytestmark = pytest.mark.asyncio


class Hand:
    """A clock that is set by hand."""

    at = 1_000_000

    def now(self) -> int:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += round(seconds * 1000)


async def test_a_flood_leaves_one_entry_a_minute_with_its_count() -> None:
    team, clock = MemoryTeam(MemoryStore().tables), Hand()
    refused = RefusedDeliveries(team, clock)
    for number in range(1_000):
        await refused.note("push", "signature" if number % 2 else "too-large", f"10.0.0.{number % 9}")
    assert [one.detail["count"] for one in await entries(team)] == [1]
    await refused.flush()
    assert len(await entries(team)) == 1
    clock.at += EVERY_MS
    await refused.flush()
    second = (await entries(team))[0]
    assert second.detail == {"count": 999, "reasons": {"signature": 500, "too-large": 499}, "address": "10.0.0.0"}
    assert (second.actor, second.action, second.entity) == ("webhook:push", "webhook.refuse", "push")
    clock.at += EVERY_MS
    await refused.flush()
    await refused.note("push", "paused", "")
    await refused.note("other", "paused", "")
    assert [one.entity for one in await entries(team)] == ["other", "push", "push", "push"]


async def entries(team: MemoryTeam) -> list[AuditEntry]:
    return await team.audited()
