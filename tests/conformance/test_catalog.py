"""Every catalog: versions by path, canonical trees by content hash."""

from __future__ import annotations

import pytest

from noetl.model.errors import Conflict
from tests.conformance.conftest import Place, Store

pytestmark = pytest.mark.asyncio


async def test_versions_count_from_one_per_path(store: Store) -> None:
    assert await store.register("a", b"one", b"tree 1", "h1", 5) == 1
    assert await store.register("a", b"two", b"tree 2", "h2", 6) == 2
    assert await store.register("b", b"one", b"tree 1", "h1", 7) == 1


async def test_a_version_that_was_not_expected_is_a_conflict(store: Store) -> None:
    assert await store.register("a", b"one", b"tree 1", "h1", 5, expected=0) == 1
    with pytest.raises(Conflict, match=r"The latest version of `a` is 1, not 0\."):
        await store.register("a", b"two", b"tree 2", "h2", 6, expected=0)
    assert await store.register("a", b"one", b"tree 1", "h1", 6, expected=0) == 1  # it is there already
    assert await store.register("a", b"two", b"tree 2", "h2", 6, expected=1) == 2
    await store.unregister("a", 2)
    with pytest.raises(Conflict, match=r"is 1, not 2\."):
        await store.register("a", b"three", b"tree 3", "h3", 7, expected=2)
    assert await store.register("a", b"three", b"tree 3", "h3", 7, expected=1) == 3
    with pytest.raises(Conflict, match=r"There is no version of `b`"):
        await store.register("b", b"one", b"tree 1", "h1", 7, expected=4)
    assert [row["version"] for row in await store.versions("a")] == [3, 1]


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
    assert [await two.content_hash("a", version) for version in (None, 2, 1, 3, 0)] == ["h2", "h2", "h1", None, None]
    assert await two.content_hash("b") is None


async def test_a_tree_is_found_by_its_hash_for_ever(store: Store) -> None:
    await store.register("a", b"one", b"tree 1", "h1", 5)
    await store.register("a", b"two", b"tree 2", "h2", 6)
    assert await store.canonical("h1") == b"tree 1"
    assert await store.canonical("h2") == b"tree 2"
    assert await store.canonical("h3") is None


async def test_entries_are_the_latest_of_every_path_in_order(store: Store) -> None:
    await store.register("b/two", b"one", b"tree 1", "h1", 5)
    await store.register("a", b"one", b"tree 1", "h1", 5)
    await store.register("b/two", b"two", b"tree 2", "h2", 6)
    await store.register("B/one", b"one", b"tree 1", "h1", 7)
    two = {"path": "b/two", "version": 2, "playbook": "h2", "registered_at": 6, "versions": 2}
    assert [row["path"] for row in await store.entries(None, None, 10)] == ["B/one", "a", "b/two"]
    assert await store.entries(None, "a", 10) == [two]
    assert [row["path"] for row in await store.entries(None, "", 1)] == ["B/one"]
    assert [row["path"] for row in await store.entries("b/", None, 10)] == ["B/one", "b/two"]
    assert await store.entries("B/T", None, 10) == [two]
    assert await store.entries("%", None, 10) == []
    assert await store.canonicals([]) == {}
    known = str(two["playbook"])
    assert await store.canonicals([known, "unknown"]) == {known: await store.canonical(known)}


async def test_versions_are_listed_newest_first(store: Store) -> None:
    await store.register("a", b"one", b"tree 1", "h1", 5)
    await store.register("a", b"two", b"tree 2", "h2", 6)
    assert await store.versions("a") == [
        {"path": "a", "version": 2, "playbook": "h2", "registered_at": 6},
        {"path": "a", "version": 1, "playbook": "h1", "registered_at": 5},
    ]
    assert await store.versions("b") == []


async def test_a_version_that_is_taken_out_is_not_found_and_its_number_is_not_given_again(store: Store) -> None:
    for number in (1, 2, 3):
        await store.register("a", f"{number}".encode(), b"tree", f"h{number}", number)
    assert await store.unregister("a", 3) == 1
    assert await store.unregister("a", 3) == 0
    assert await store.unregister("a", 9) == 0
    latest = await store.find("a")
    assert latest is not None
    assert latest["version"] == 2
    assert await store.find("a", 3) is None
    assert await store.content_hash("a", 3) is None
    assert await store.content_hash("a") == latest["playbook"]
    assert [row["version"] for row in await store.versions("a")] == [2, 1]
    assert [(row["version"], row["versions"]) for row in await store.entries(None, None, 5)] == [(2, 2)]
    assert await store.register("a", b"3", b"tree", "h3", 9) == 4
    assert await store.canonical("h3") == b"tree"


async def test_a_path_is_taken_out_whole(store: Store) -> None:
    await store.register("a", b"one", b"tree 1", "h1", 5)
    await store.register("a", b"two", b"tree 2", "h2", 6)
    await store.register("b", b"one", b"tree 1", "h1", 7)
    assert await store.unregister("a") == 2
    assert await store.find("a") is None
    assert [row["path"] for row in await store.entries(None, None, 5)] == ["b"]
    assert await store.canonical("h1") == b"tree 1"
    assert await store.register("a", b"two", b"tree 2", "h2", 8) == 3


async def test_entries_of_namespaces_are_listed(store: Store) -> None:
    for path in ("a/x", "a/y", "ab/x", "b/x"):
        await store.register(path, path.encode(), b"{}", path, 1)
    assert [one["path"] for one in await store.entries(None, None, 10, ["a/"])] == ["a/x", "a/y"]
    assert [one["path"] for one in await store.entries("x", "a/x", 10, ["a/", "b/"])] == ["b/x"]
    assert await store.entries(None, None, 10, []) == []
