"""Followers: woken by commits, ended by the end, gone without a trace."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from noetl.model.events import Event
from noetl.ports import Commit
from noetl.server.control_plane import Store
from noetl.server.feeds.followers import _MOST_PASSED, Followers
from noetl.server.sequencer.commit_hooks import CommitHooks
from tests.conformance.commits import commit, event
from tests.unit.server.system import RealClock

pytestmark = pytest.mark.asyncio


def finished(at: int) -> Commit:
    last = event("1", at + 1)
    last = type(last)(last.event_id, "1", at + 1, "playbook.processed", 1)
    return Commit("1", at, (last,), projection={"status": "completed", "ended_at": 1})


async def test_a_long_log_is_given_in_pages(store: Store) -> None:
    await store.commit([commit(count=1_234), finished(1_234)])
    assert [event.seq async for event in Followers(store, RealClock(), CommitHooks()).follow("1")] == list(
        range(1, 1_236)
    )


async def test_a_follower_waits_for_what_is_to_come(store: Store) -> None:
    followers = Followers(store, RealClock(), CommitHooks())

    async def follow() -> list[int]:
        return [event.seq async for event in followers.follow("1")]

    task = asyncio.create_task(follow())
    await asyncio.sleep(0.01)
    await store.commit([commit(projection={"status": "running"})])
    followers.doubt("2")
    followers.doubt("1")
    await asyncio.sleep(0.01)
    assert not task.done()
    await store.commit([finished(1)])
    followers.wake_all()
    assert await asyncio.wait_for(task, 10) == [1, 2]


async def test_what_comes_after_the_end_is_given_too(store: Store) -> None:
    await store.commit([commit(), finished(1), commit(at=2, message="late")])
    followers = Followers(store, RealClock(), CommitHooks())
    assert [event.seq async for event in followers.follow("1")] == [1, 2, 3]
    assert [event.seq async for event in followers.follow("1", after=2)] == [3]
    assert [event.seq async for event in followers.follow("1", after=3)] == []


async def test_a_follower_of_some_types_is_not_woken_for_others(store: Store) -> None:
    reads = []

    class Counted:
        def __getattr__(self, name: str) -> Any:
            reads.append(name)
            return getattr(store, name)

    followers = Followers(Counted(), RealClock(), CommitHooks())

    async def follow() -> list[int]:
        batches = followers.follow_batches("1", may_be_over=False, wanted=frozenset({"playbook.processed"}))
        return [event.seq async for events in batches for event in events]

    task = asyncio.create_task(follow())
    await asyncio.sleep(0.01)
    for at in range(5):
        made = commit(at=at, message=f"m{at}", projection={"status": "running"})
        await store.commit([made])
        followers.committed([made])
        await asyncio.sleep(0.005)
    assert reads == ["read"]
    await store.commit([commit(at=5, message="unheard"), finished(6)])
    followers.committed([finished(6)])  # the events before it were not announced
    assert await asyncio.wait_for(task, 10) == [6, 7]


async def test_a_follower_that_leaves_is_forgotten(store: Store) -> None:
    await store.commit([commit(count=3)])
    followers = Followers(store, RealClock(), CommitHooks())
    async with aclosing(followers.follow("1")) as events:
        async for event in events:
            assert event.seq == 1
            break
    assert followers._followers == {}


@pytest.mark.parametrize("wanted", [frozenset({"playbook.finished"}), frozenset({"playbook.started"})])
async def test_a_follower_of_all_is_not_woken_for_other_types_but_moves_along(
    store: Store, wanted: frozenset[str]
) -> None:
    followers = Followers(store, RealClock(), CommitHooks())
    last = Event("e.0", "1", 2, next(iter(wanted)), 1)
    found: list[str] = []

    async def follow() -> None:
        async with aclosing(followers.follow_all({}, wanted)) as batches:
            async for batch in batches:
                found.extend(one.event.event_type for one in batch)
                if found[-1] in wanted:
                    return

    task = asyncio.create_task(follow())
    await asyncio.sleep(0.01)
    [follower] = followers._of_all
    made = commit(projection={"status": "running"})
    await store.commit([made])
    followers.committed([made])
    assert not follower.more.is_set()
    for _ in range(_MOST_PASSED):
        followers.committed([made])
    assert follower.more.is_set()  # it reads past what is not for it
    over = Commit("1", 1, (last,), projection={"status": "completed", "ended_at": 1})
    await store.commit([over])
    followers.committed([over])
    await asyncio.wait_for(task, 10)
    assert found[-1] in wanted
    assert followers._of_all == set()
