"""Room for so many at once: in turn, and nobody keeps a place that he did not get."""

from __future__ import annotations

import asyncio

import pytest

from noetl.model.errors import Overloaded
from noetl.server.room import Room

pytestmark = pytest.mark.asyncio


async def test_who_waits_for_room_is_let_in_in_turn_and_one_who_left_takes_no_place() -> None:
    room, entered = Room[str](2), list[str]()

    async def come(name: str) -> None:
        if not room.enter(name):
            await room.wait(name)
        entered.append(name)

    guests = [asyncio.create_task(come(name)) for name in "abcdef"]
    await asyncio.sleep(0)
    assert entered == ["a", "b"]
    guests[2].cancel()
    await asyncio.sleep(0)
    guests[3].cancel()  # it is gone before a place is free
    room.leave("a")
    guests[4].cancel()  # it was just given the place
    told = await asyncio.gather(*guests, return_exceptions=True)
    assert [type(error) for error in told[2:5]] == [asyncio.CancelledError] * 3
    assert entered == ["a", "b", "f"]
    assert room.inside == {"b", "f"}
    room.leave("b")
    room.leave("b")  # once is enough
    room.leave("f")
    assert [room.enter(name) for name in "xyz"] == [True, True, False]


async def test_patience_ends_and_leaves_no_trace() -> None:
    room = Room[str](1, 0.01)
    assert room.enter("a")
    with pytest.raises(Overloaded):
        await room.wait("b")
    room.leave("a")
    assert [room.enter(name) for name in "cd"] == [True, False]
