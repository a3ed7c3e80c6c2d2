"""Every feed: a reader misses no event, sees none twice, waits for no writer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import pairwise

import pytest
from msgspec.structs import replace

from noetl.ports import Position
from tests.conformance.commits import commit
from tests.conformance.conftest import Place, Store

pytestmark = pytest.mark.asyncio
ENDED = {"status": "completed", "ended_at": 1}


async def rest(store: Store, after: Mapping[str, int], most: int = 3) -> tuple[list[Position], dict[str, int]]:
    """Read to the end in pages; return the events and the position after them."""
    position, found = dict(after), []
    while page := await store.feed(position, most):
        assert len(page) <= most
        for one in page:
            assert one.writer_seq > position.get(one.writer_id, 0)
            position[one.writer_id] = one.writer_seq
        found += page
    return found, position


def names(found: list[Position]) -> list[tuple[str, int]]:
    return sorted((one.event.execution_id, one.event.seq) for one in found)


async def test_an_empty_store_has_no_writers_and_no_feed(store: Store) -> None:
    assert await store.writers() == {}
    assert await store.feed({}, 10) == []
    assert await store.feed({"unknown": 7}, 10) == []


async def test_events_come_once_each_in_the_order_of_their_writer(store: Store) -> None:
    await store.commit([commit("1", count=2), commit("2"), commit("1", 2)])
    await store.commit([commit("1", 9), commit("2", 1, count=2)])
    found, position = await rest(store, {})
    assert [(one.event.execution_id, one.event.seq) for one in found] == [
        ("1", 1), ("1", 2), ("2", 1), ("1", 3), ("2", 2), ("2", 3),
    ]  # fmt: skip
    assert [one.writer_seq for one in found] == [1, 2, 3, 4, 5, 6]
    assert len({one.writer_id for one in found}) == 1
    assert [one.event for one in found if one.event.execution_id == "1"] == await store.read("1")
    assert await store.writers() == position


async def test_a_follower_goes_on_where_he_was(place: Place) -> None:
    one, two, follower = place.open(), place.open(), place.open()
    await one.commit([commit("1")])
    _, position = await rest(follower, {})
    await two.commit([commit("2", count=2)])
    await one.commit([commit("1", 1)])
    found, position = await rest(follower, position)
    assert names(found) == [("1", 2), ("2", 1), ("2", 2)]
    assert position == await one.writers() == await two.writers()
    assert await follower.feed(position, 10) == []


async def test_of_wanted_types_none_is_missed_and_the_position_moves_along(place: Place) -> None:
    one, two, follower = place.open(), place.open(), place.open()
    for number, store in enumerate((one, two, one, two)):
        made = commit(str(number), count=5)
        marked = replace(made.events[2], event_type="playbook.finished")
        await store.commit([replace(made, events=(*made.events[:2], marked, *made.events[3:]))])
    position, found = dict[str, int](), list[Position]()
    while page := await follower.feed(position, 4, {"playbook.finished"}):
        found += page
        position |= {place.writer_id: place.writer_seq for place in page}
    assert names([place for place in found if place.event.event_type == "playbook.finished"]) == [
        ("0", 3), ("1", 3), ("2", 3), ("3", 3),
    ]  # fmt: skip
    assert position == await one.writers()


async def test_a_commit_that_does_not_apply_leaves_no_gap(place: Place) -> None:
    one, two = place.open(), place.open()
    await one.commit([commit("1")])
    await one.commit([commit("1")])
    with pytest.raises(TypeError):
        await one.commit([commit("1", 1, projection={"x": object()})])
    await two.commit([commit("1", 1)])
    await one.commit([commit("1", 2)])
    found, _ = await rest(two, {})
    assert names(found) == [("1", 1), ("1", 2), ("1", 3)]
    for writer in {one.writer_id for one in found}:
        seqs = [one.writer_seq for one in found if one.writer_id == writer]
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))


async def test_nothing_is_missed_while_several_write(place: Place) -> None:
    async def write(name: str) -> None:
        store = place.open()
        for number in range(40):
            await store.commit([commit(name, number)])
            await asyncio.sleep(0)

    writers = [asyncio.create_task(write(str(number))) for number in range(3)]
    follower, position, found = place.open(), dict[str, int](), list[Position]()
    while len(found) < 120:
        more, position = await rest(follower, position, 7)
        found += more
        if all(writer.done() for writer in writers):
            more, position = await rest(follower, position, 7)
            found += more
            break
        await asyncio.sleep(0)
    await asyncio.gather(*writers)
    assert names(found) == [(str(name), seq) for name in range(3) for seq in range(1, 41)]
    assert position == await follower.writers()


async def test_what_is_removed_leaves_the_feed_and_its_numbers_are_not_given_again(store: Store) -> None:
    await store.commit([commit("1"), commit("2", projection=ENDED), commit("3", count=2, projection=ENDED)])
    seen = await store.writers()
    assert await store.remove("3")
    assert await store.remove("2")
    found, _ = await rest(store, {})
    assert names(found) == [("1", 1)]
    await store.commit([commit("4", count=2)])
    found, position = await rest(store, seen)
    assert names(found) == [("4", 1), ("4", 2)]
    assert await store.writers() == position
    assert all(one < two for one, two in pairwise([seen[name] for name in seen] + [found[0].writer_seq]))
    found, _ = await rest(store, {})
    assert names(found) == [("1", 1), ("4", 1), ("4", 2)]
