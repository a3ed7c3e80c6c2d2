"""Reader: states of executions for queries, up to date, bounded in memory."""

from __future__ import annotations

import asyncio

import pytest

from noetl.model.errors import UnknownExecution
from noetl.server.control_plane import LocalControlPlane, Store
from noetl.server.feeds.reader import Reader
from tests.unit.server.system import RealClock, begin, chain, ended, register, workers

pytestmark = pytest.mark.asyncio


async def test_a_state_is_read_once_and_follows_the_log(store: Store) -> None:
    async with LocalControlPlane(store, RealClock()) as control, workers(control):
        reader = Reader(store)
        execution_id = await begin(control, await register(store, chain(3)))
        await reader.state(execution_id)
        await ended(control, store, execution_id)
        first, second = await asyncio.gather(reader.state(execution_id), reader.state(execution_id))
        assert first is second
        assert first.status == "completed"


async def test_an_unknown_execution_leaves_nothing_behind(store: Store) -> None:
    reader = Reader(store)
    for number in range(200):
        with pytest.raises(UnknownExecution):
            await reader.state(str(number))
    async with LocalControlPlane(store, RealClock()) as control, workers(control):
        execution_id = await begin(control, await register(store, chain(1)))
        assert (await reader.state(execution_id)).seq


async def test_large_states_are_not_all_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.server.feeds.reader._MOST_BYTES", 300_000)
    async with LocalControlPlane(store, RealClock()) as control, workers(control):
        playbook = await register(store, chain(1))
        names = [await begin(control, playbook, payload={"text": "x" * 100_000}) for _ in range(5)]
        reader = Reader(store)
        states = {name: await reader.state(name) for name in names}
        assert await reader.state(names[-1]) is states[names[-1]]
        assert await reader.state(names[0]) is not states[names[0]]
