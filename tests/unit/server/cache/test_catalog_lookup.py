"""Concurrent lookups share a read; no caller gets one older than its request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from noetl.model.errors import StoreUnavailable
from noetl.server.cache.catalog_lookup import CatalogLookup
from noetl.stores.memory.store import MemoryStore

pytestmark = pytest.mark.asyncio


class Counting(MemoryStore):
    """Store with a new version for each lookup; lookups end when `may_end` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.may_end = asyncio.Event()
        self.away = False

    async def content_hash(self, path: str, version: int | None = None) -> str | None:
        self.looks += 1
        found = f"{path} {self.looks}"
        await self.may_end.wait()
        if self.away:
            raise StoreUnavailable("the disk is away")
        return found


async def passed() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def asked(lookups: CatalogLookup, count: int, path: str = "a") -> list[asyncio.Task[Any]]:
    tasks = [asyncio.create_task(lookups.content_hash(path)) for _ in range(count)]
    await passed()
    return tasks


async def test_those_who_come_while_one_looks_share_the_next_look() -> None:
    store = Counting()
    lookups = CatalogLookup(store)
    first, later = await asked(lookups, 1), await asked(lookups, 4)
    other = await asked(lookups, 1, "b")
    store.may_end.set()
    assert [await task for task in first] == ["a 1"]
    assert [await task for task in other] == ["b 2"]
    assert [await task for task in later] == ["a 3"] * 4
    assert (await lookups.content_hash("a")) == "a 4"


async def test_one_who_goes_away_keeps_nobody_from_the_answer() -> None:
    store = Counting()
    lookups = CatalogLookup(store)
    first, another, last = await asked(lookups, 3)
    first.cancel()
    await passed()
    another.cancel()
    store.may_end.set()
    assert await last == "a 2"
    assert (await lookups.content_hash("a")) == "a 3"


async def test_trouble_is_told_to_all_who_shared_it_and_to_nobody_after() -> None:
    store = Counting()
    lookups = CatalogLookup(store)
    tasks = await asked(lookups, 3)
    store.away = True
    store.may_end.set()
    told = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(error) for error in told] == [StoreUnavailable] * 3
    store.away = False
    assert (await lookups.content_hash("a")) is not None
