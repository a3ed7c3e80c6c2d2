"""Completions: from own commits, from rows of other servers, without leaks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from noetl.model.events import Event
from noetl.ports import Commit
from noetl.server.control_plane import Store
from noetl.server.feeds.completion import CompletionWaiters, Ended
from noetl.server.sequencer.commit_hooks import CommitHooks
from tests.conformance.commits import event

pytestmark = pytest.mark.asyncio
LONG_S = 60.0


def over(execution_id: str = "1", result: Any = 3) -> Commit:
    """Return a commit that ends an execution."""
    told = {"status": "completed", "result": result}
    events = (
        Event("e.0", execution_id, 2, "playbook.finished", 9, payload=told),
        Event("e.1", execution_id, 3, "playbook.processed", 9),
    )
    return Commit(execution_id, 1, events, projection={**told, "ended_at": 9})


def row_of(execution_id: str = "1") -> Commit:
    """Return another server's commit: the row of an ended execution."""
    row = {"status": "completed", "result": 3, "ended_at": 9}
    return Commit(execution_id, 0, (event(execution_id, 1),), projection=row)


class Reads:
    """A store that notes which rows are read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.read: list[str] = []

    async def execution(self, execution_id: str) -> Any:
        self.read.append(execution_id)
        return await self._store.execution(execution_id)


async def test_whoever_waits_is_told_by_the_commit_of_the_end(store: Store) -> None:
    endings = CompletionWaiters(store, CommitHooks())
    last = Event("e.0", "1", 2, "playbook.finished", 7, payload={"status": "failed", "error": {"kind": "x"}})
    with endings.of("1") as waiting:
        told = asyncio.ensure_future(waiting.within(LONG_S))
        await asyncio.sleep(0.01)
        endings.committed(over("2"))
        await asyncio.sleep(0.01)
        assert not told.done()
        endings.committed(Commit("1", 1, (last,)))  # nothing of it is in the log, which is not read
        assert await told == {"1": Ended("failed", None, {"kind": "x"}, 7)}
    assert endings._waiting == {}


async def test_an_end_that_came_before_anybody_waited_is_not_missed(store: Store) -> None:
    endings = CompletionWaiters(store, CommitHooks())
    with endings.of("1") as waiting, endings.of("1") as other:
        endings.committed(over())
        assert await waiting.within(LONG_S) == await other.within(LONG_S) == {"1": Ended("completed", 3, None, 9)}
    assert endings._waiting == {}


async def test_whoever_waits_for_many_waits_for_all_of_them(store: Store) -> None:
    endings = CompletionWaiters(store, CommitHooks())
    with endings.of("1", "2", "3") as waiting:
        told = asyncio.ensure_future(waiting.within(LONG_S))
        for execution_id in ("3", "1"):
            endings.committed(over(execution_id, execution_id))
            await asyncio.sleep(0.01)
            assert not told.done()
        endings.committed(over("2", "2"))
        assert {name: end.result for name, end in (await told).items()} == {"1": "1", "2": "2", "3": "3"}
    assert endings._waiting == {}


async def test_when_the_time_is_over_the_ends_that_are_known_are_given(store: Store) -> None:
    endings = CompletionWaiters(store, CommitHooks())
    with endings.of("1", "2") as waiting:
        endings.committed(over())
        assert list(await waiting.within(0.01)) == ["1"]
    assert endings._waiting == {}


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_end_that_somebody_else_committed_is_found_in_the_row(store: Store, when: str) -> None:
    endings = CompletionWaiters(store, CommitHooks())
    with endings.of("1") as waiting:
        if when == "before":
            await store.commit([row_of()])
        told = asyncio.ensure_future(waiting.within(LONG_S, may_be_over=when == "before"))
        await asyncio.sleep(0.01)
        endings.doubt_all()  # others have committed something else
        if when == "after":
            await store.commit([row_of()])
            endings.doubt_all()
        assert await told == {"1": Ended("completed", 3, None, 9)}
    assert endings._waiting == {}


@pytest.mark.parametrize("goes_on_first", [True, False])
async def test_of_many_rows_only_those_up_to_the_first_that_has_not_ended_are_read(
    store: Store, goes_on_first: bool
) -> None:
    """Those that another server ended are found behind one that ends here."""
    reads = Reads(store)
    endings = CompletionWaiters(reads, CommitHooks())  # type: ignore[arg-type]
    await store.commit([row_of("1"), row_of("3")])
    with endings.of("1", "2", "3") as waiting:
        told = asyncio.ensure_future(waiting.within(LONG_S, may_be_over=True))
        while len(reads.read) < 2:
            await asyncio.sleep(0.001)
        if goes_on_first:  # a commit that is not the end
            endings.committed(Commit("2", 1, (event("2", 1),), projection={"ended_at": 9}))
        endings.committed(over("2"))
        assert sorted(await asyncio.wait_for(told, 10)) == ["1", "2", "3"]
    assert reads.read == ["1", "2", "3"]


async def test_whoever_waits_is_let_go_when_the_server_stops(store: Store) -> None:
    endings = CompletionWaiters(store, CommitHooks())
    with endings.of("1") as waiting:
        told = asyncio.ensure_future(waiting.within(LONG_S))
        await asyncio.sleep(0.01)
        endings.let_go()
        assert await told == {}
    with endings.of("1") as waiting:
        assert await waiting.within(LONG_S) == {}
    assert endings._waiting == {}
