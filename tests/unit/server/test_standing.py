"""A worker of the same process that asks once: what it is told of, when the queue is looked into for it, and the end."""

from __future__ import annotations

import asyncio

import pytest

from noetl.model.work import Lease, WorkItem
from noetl.server.control import LocalControl
from noetl.server.inbox import Ask
from noetl.server.standing import Standing
from noetl.stores.memory import MemoryStore
from tests.unit.server.system import RealClock, begin, register

pytestmark = pytest.mark.asyncio


def leases(count: int) -> list[Lease]:
    return [Lease(WorkItem(f"w{number}", "1", "s#1", "s", 1, "p", {}), 1, 1, 9) for number in range(count)]


async def start(store: MemoryStore, control: LocalControl, *ids: str) -> None:
    playbook = await register(store)
    for execution_id in ids:
        await begin(control, playbook, execution_id)


class Line:
    """The line of those who ask, as a list."""

    def __init__(self, most: int) -> None:
        self.asks: list[Ask] = []
        self.told: list[int] = []
        self.standing = Standing("w", (("",), ()), most, lambda found: self.told.append(len(found)), self)

    def ask(self, ask: Ask) -> None:
        self.asks.append(ask)

    def ask_no_more(self, ask: Ask) -> None:
        self.asks = [other for other in self.asks if other is not ask]

    @property
    def most(self) -> int:
        return self.asks[0].most


async def test_one_that_was_given_less_than_it_wants_is_not_looked_for_again() -> None:
    line = Line(4)
    line.standing.set_result(leases(1))
    assert (line.told, line.most, len(line.asks)) == ([1], 3, 1)
    line.standing.room(4)
    line.standing.set_result(leases(2))
    assert (line.told, line.most, len(line.asks)) == ([1, 2], 2, 1)
    assert not line.standing.done()


async def test_one_that_was_given_all_it_wants_is_looked_for_when_there_is_room_again() -> None:
    line = Line(2)
    line.standing.set_result(leases(2))
    assert line.standing.done()
    assert len(line.asks) == 1
    line.standing.room(1)
    assert (line.most, len(line.asks), line.standing.done()) == (1, 2, False)


async def test_one_that_got_more_room_while_it_was_looked_for_is_looked_for_again() -> None:
    line = Line(2)
    line.standing.room(3)  # the queue was asked for two
    line.standing.set_result(leases(2))
    assert (line.most, len(line.asks)) == (1, 2)


async def test_one_that_has_ended_wants_nothing() -> None:
    line = Line(2)
    line.standing.end()
    assert line.standing.done()
    assert line.asks == []


async def test_new_work_is_told_in_the_commit_that_makes_it() -> None:
    store = MemoryStore()
    async with LocalControl(store, RealClock()) as control:
        told: asyncio.Queue[list[Lease]] = asyncio.Queue()
        standing = control.attend("w", ("",), 2, told.put_nowait)
        await start(store, control, "1", "2", "3")
        assert [lease.work.execution_id for lease in await told.get()] == ["1"]
        assert [lease.work.execution_id for lease in await told.get()] == ["2"]
        assert told.empty()
        standing.room(1)
        assert [lease.work.execution_id for lease in await told.get()] == ["3"]


async def test_those_who_wait_have_their_turns() -> None:
    store = MemoryStore()
    async with LocalControl(store, RealClock()) as control:
        told: list[str] = []
        control.attend("a", ("",), 9, lambda found: told.extend("a" for _ in found))
        control.attend("b", ("",), 9, lambda found: told.extend("b" for _ in found))
        await start(store, control, "1", "2", "3", "4")
        assert told == ["a", "b", "a", "b"]


async def test_work_for_one_that_has_ended_stays_in_the_queue() -> None:
    store = MemoryStore()
    async with LocalControl(store, RealClock()) as control:
        told: list[Lease] = []
        control.attend("a", ("",), 9, told.extend).end()
        await start(store, control, "1")
        assert told == []
        assert [lease.work.execution_id for lease in await control.claim("b", ("",), 1, 5)] == ["1"]
