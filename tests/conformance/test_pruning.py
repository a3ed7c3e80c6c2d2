"""Pruning on every store: by age, by one server, never what is open."""

from __future__ import annotations

import asyncio

import pytest

from noetl.model.letters import PENDING
from noetl.model.messages import Discard, Ending, Report
from noetl.ports.letters import LetterSelection
from noetl.server.background.pruning import Pruning, Retention
from noetl.server.control_plane import LocalControlPlane
from tests.conformance.conftest import Place, Store
from tests.unit.server.system import RealClock, begin, chain, ended, register, report_on, workers

pytestmark = pytest.mark.asyncio
DAY = 86_400_000


class Later:
    """Clock of some days later."""

    def __init__(self, days: float) -> None:
        self.at = RealClock().now() + round(days * DAY)

    def now(self) -> int:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += round(seconds * 1000)
        await asyncio.sleep(0)


def pruning(place: Place, store: Store, days: float, retention: Retention, holder: str = "a") -> Pruning:
    return Pruning(store, place.derived(store), Later(days), retention, holder=holder)


async def test_ended_executions_go_after_their_time_and_open_ones_stay(place: Place) -> None:
    store = place.open()
    async with LocalControlPlane(store, RealClock()) as control:
        playbook = await register(store, chain(1))
        done = await begin(control, playbook)
        async with workers(control):
            await ended(control, store, done)
        waiting = await begin(control, playbook)
        assert await pruning(place, store, 90, Retention(30, 0)).prune() == (0, 0)  # for ever
        assert await pruning(place, store, 6.9, Retention(30, 7)).prune() == (0, 0)
        assert await store.execution(done) is not None
        later = pruning(place, store, 200, Retention(30, 7))
        assert await later.prune() == (0, 1)
        assert await store.execution(done) is None
        assert await store.read(done) == []
        assert await store.execution(waiting) is not None
        [entry] = await place.team(store).audited(entity=done)
        assert (entry.actor, entry.action) == ("retention", "execution.delete")
        assert await later.prune() == (0, 0)


async def test_closed_dead_letters_go_and_waiting_ones_stay(place: Place) -> None:
    store = place.open()
    async with LocalControlPlane(store, RealClock()) as control:
        playbook = await register(store, chain(1))
        for _ in range(2):
            execution = await begin(control, playbook)
            (lease,) = await control.claim("w", ("",), 1, 10.0)
            error = {"kind": "http", "message": "gone"}
            failed = Report(f"r-{execution}", lease.work.run_id, lease.epoch, "w", ending=Ending("error", error=error))
            await report_on(control, execution, failed)
        closed, kept = await store.letters(LetterSelection(status=(PENDING,)))
        what = ((closed.step_id, closed.run_id, closed.loop_index),)
        await control.submit(closed.execution_id, Discard("discard-1", what, "no use", "test"))
        assert await pruning(place, store, 29, Retention(30, 0)).prune() == (0, 0)
        assert await pruning(place, store, 60, Retention(30, 0)).prune() == (1, 0)
        assert [one.message_id for one in await store.letters(LetterSelection())] == [kept.message_id]


async def test_one_of_several_servers_prunes(place: Place) -> None:
    store = place.open()
    async with LocalControlPlane(store, RealClock()) as control:
        playbook = await register(store, chain(1))
        execution = await begin(control, playbook)
        async with workers(control):
            await ended(control, store, execution)
        await place.derived(store).on_duty("pruning", "other", RealClock().now(), RealClock().now() + 100 * DAY)
        assert await pruning(place, store, 50, Retention(1, 1), "a").prune() == (0, 0)
        assert await pruning(place, store, 50, Retention(1, 1), "other").prune() == (0, 1)
