"""Bounded admission: in order, in whole groups, refused after a time-out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from noetl.server.sequencer.admission import AdmissionQueue

pytestmark = pytest.mark.asyncio


class Door:
    """An admission queue, and what came of its items."""

    def __init__(self, places: int, timeout_s: float | None = None) -> None:
        self.admitted: list[str] = []
        self.refused: list[str] = []
        self.queue = AdmissionQueue[str](places, timeout_s, self._admit, self.refused.extend)

    def _admit(self, group: Sequence[str]) -> None:
        self.admitted += group


async def test_items_wait_in_order_and_one_that_withdrew_takes_no_place() -> None:
    door = Door(2)
    groups = [(name,) for name in "abcdef"]
    for group in groups:
        door.queue.enter(group)
    assert door.admitted == ["a", "b"]
    assert door.queue.withdraw(groups[2])
    assert not door.queue.withdraw(groups[0])
    door.queue.leave("a")
    assert door.admitted == ["a", "b", "d"]
    door.queue.leave("b")
    door.queue.leave("b")  # once is enough
    assert door.admitted == ["a", "b", "d", "e"]
    assert len(door.queue) == 2


async def test_a_group_is_admitted_as_a_whole() -> None:
    door = Door(2)
    door.queue.enter(("a",))
    door.queue.enter(("b", "c", "d"))
    door.queue.enter(("e",))
    assert (door.admitted, len(door.queue)) == (["a", "b", "c", "d"], 4)
    for name in "abc":
        door.queue.leave(name)
    assert door.admitted == ["a", "b", "c", "d", "e"]


async def test_what_waits_too_long_is_refused_and_leaves_no_trace() -> None:
    door = Door(1, 0.01)
    door.queue.enter(("a",))
    door.queue.enter(("b", "c"))
    await asyncio.sleep(0.03)
    assert door.refused == ["b", "c"]
    door.queue.leave("a")
    door.queue.enter(("d",))
    assert door.admitted == ["a", "d"]
    await asyncio.sleep(0.03)
    assert door.refused == ["b", "c"]


async def test_everything_can_be_taken_out() -> None:
    door = Door(1)
    door.queue.enter(("a",))
    door.queue.enter(("b", "c"))
    assert sorted(door.queue.drain()) == ["a", "b", "c"]
    assert len(door.queue) == 0
