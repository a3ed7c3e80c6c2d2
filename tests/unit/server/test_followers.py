"""Followers: woken by commits, ended by the end, gone without a trace."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from noetl.model.events import Event
from noetl.ports import Commit
from noetl.server.control import Store
from noetl.server.followers import Ended, Followers
from tests.conformance.commits import commit, event
from tests.unit.server.system import RealClock

pytestmark = pytest.mark.asyncio


def finished(at: int) -> Commit:
    last = event("1", at + 1)
    last = type(last)(last.event_id, "1", at + 1, "playbook.processed", 1)
    return Commit("1", at, (last,), projection={"status": "completed"})


async def test_a_long_log_is_given_in_pages(store: Store) -> None:
    await store.commit([commit(count=1_234), finished(1_234)])
    assert [event.seq async for event in Followers(store, RealClock()).follow("1")] == list(range(1, 1_236))


async def test_a_follower_waits_for_what_is_to_come(store: Store) -> None:
    followers = Followers(store, RealClock())

    async def follow() -> list[int]:
        return [event.seq async for event in followers.follow("1")]

    task = asyncio.create_task(follow())
    await asyncio.sleep(0.01)
    await store.commit([commit(projection={"status": "running"})])
    followers.tell("2")
    followers.tell("1")
    await asyncio.sleep(0.01)
    assert not task.done()
    await store.commit([finished(1)])
    followers.tell_all()
    assert await asyncio.wait_for(task, 10) == [1, 2]


async def test_what_comes_after_the_end_is_given_too(store: Store) -> None:
    await store.commit([commit(), finished(1), commit(at=2, message="late")])
    followers = Followers(store, RealClock())
    assert [event.seq async for event in followers.follow("1")] == [1, 2, 3]
    assert [event.seq async for event in followers.follow("1", after=2)] == [3]
    assert [event.seq async for event in followers.follow("1", after=3)] == []


async def test_a_follower_of_some_types_is_not_woken_for_others(store: Store) -> None:
    reads = []

    class Counted:
        def __getattr__(self, name: str) -> Any:
            reads.append(name)
            return getattr(store, name)

    followers = Followers(Counted(), RealClock())

    async def follow() -> list[int]:
        batches = followers.follow_batches("1", may_be_over=False, wanted=frozenset({"playbook.processed"}))
        return [event.seq async for events in batches for event in events]

    task = asyncio.create_task(follow())
    await asyncio.sleep(0.01)
    for at in range(5):
        made = commit(at=at, message=f"m{at}", projection={"status": "running"})
        await store.commit([made])
        followers.tell("1", False, made.events)
        await asyncio.sleep(0.005)
    assert reads == ["read"]
    await store.commit([commit(at=5, message="unheard"), finished(6)])
    followers.tell("1", True, finished(6).events)  # what came before it, nobody was told of
    assert await asyncio.wait_for(task, 10) == [6, 7]


async def test_a_follower_that_leaves_is_forgotten(store: Store) -> None:
    await store.commit([commit(count=3)])
    followers = Followers(store, RealClock())
    async with aclosing(followers.follow("1")) as events:
        async for event in events:
            assert event.seq == 1
            break
    assert followers._followers == {}


async def test_whoever_waits_for_the_end_is_told_by_the_commit_of_it(store: Store) -> None:
    followers = Followers(store, RealClock())
    last = Event("e.0", "1", 2, "playbook.finished", 7, payload={"status": "failed", "error": {"kind": "x"}})
    with followers.ending("1") as ended:
        followers.tell("1", events=(event("1", 1),))
        waiting = asyncio.ensure_future(ended(False))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        followers.tell("1", ended=True, events=(last,))  # nothing of it is in the log, which is not read
        assert await waiting == Ended("failed", None, {"kind": "x"}, 7)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_end_that_somebody_else_committed_is_found_in_the_row(store: Store, when: str) -> None:
    followers = Followers(store, RealClock())
    row = {"status": "completed", "result": 3, "ended_at": 9}
    over = Commit("1", 0, (event("1", 1),), projection=row)
    with followers.ending("1") as ended:
        if when == "before":
            await store.commit([over])
        waiting = asyncio.ensure_future(ended(when == "before"))
        await asyncio.sleep(0.01)
        followers.tell_all()  # others have committed something else
        if when == "after":
            await store.commit([over])
            followers.tell_all()
        assert await waiting == Ended("completed", 3, None, 9)


async def test_whoever_waits_for_the_end_is_let_go_when_the_server_stops(store: Store) -> None:
    followers = Followers(store, RealClock())
    with followers.ending("1") as ended:
        waiting = asyncio.ensure_future(ended(False))
        await asyncio.sleep(0.01)
        followers.let_go()
        assert await waiting is None
