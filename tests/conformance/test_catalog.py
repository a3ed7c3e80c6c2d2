"""What every catalog keeps to: versions by path, canonical trees by content hash."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import Place, Store

pytestmark = pytest.mark.asyncio


async def test_versions_count_from_one_per_path(store: Store) -> None:
    assert await store.register("a", b"one", b"tree 1", "h1", 5) == 1
    assert await store.register("a", b"two", b"tree 2", "h2", 6) == 2
    assert await store.register("b", b"one", b"tree 1", "h1", 7) == 1


async def test_registering_the_same_again_is_no_new_version(store: Store) -> None:
    await store.register("a", b"one", b"tree", "h", 5)
    assert await store.register("a", b"one", b"tree", "h", 9) == 1
    assert await store.register("a", b"one # a comment", b"tree", "h", 9) == 2
    assert await store.register("a", b"one", b"tree", "h", 9) == 3


async def test_a_version_is_found_by_path(place: Place) -> None:
    one, two = place.open(), place.open()
    await one.register("a", b"one", b"tree 1", "h1", 5)
    await one.register("a", b"two", b"tree 2", "h2", 6)
    latest = {"path": "a", "version": 2, "playbook": "h2", "content": b"two", "registered_at": 6}
    assert await two.find("a") == latest
    assert await two.find("a", 2) == latest
    first = await two.find("a", 1)
    assert first is not None
    assert first["playbook"] == "h1"
    assert await two.find("a", 3) is None
    assert await two.find("a", 0) is None
    assert await two.find("b") is None


async def test_a_tree_is_found_by_its_hash_for_ever(store: Store) -> None:
    await store.register("a", b"one", b"tree 1", "h1", 5)
    await store.register("a", b"two", b"tree 2", "h2", 6)
    assert await store.canonical("h1") == b"tree 1"
    assert await store.canonical("h2") == b"tree 2"
    assert await store.canonical("h3") is None
