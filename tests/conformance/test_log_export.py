"""Exports on every store: all events in order, by one server at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from noetl.masking.readers import ReaderMask
from noetl.model.events import Event
from noetl.observe.counters import page
from noetl.observe.export.counts import ExportCounts
from noetl.observe.export.target import Exported, ExportError
from noetl.server.background.log_export import LogExport
from noetl.server.control_plane import LocalControlPlane
from tests.conformance.conftest import Place, Store
from tests.unit.server.system import RealClock, begin, chain, ended, register, workers

pytestmark = pytest.mark.asyncio


class Clock:
    """Clock that the test sets."""

    def __init__(self) -> None:
        self.at = RealClock().now()

    def now(self) -> int:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += round(seconds * 1000)
        await asyncio.sleep(0)


class Target:
    """Target that keeps what it gets, and fails when the test says so."""

    name = "list"
    every_s = 1.0

    def __init__(self, most: int = 1_000, wanted: frozenset[str] | None = None) -> None:
        self.most = most
        self.wanted = wanted
        self.got: list[Exported] = []
        self.batches: list[tuple[int, str, bool]] = []
        self.fails: list[Exception] = []
        self.prepared = 0
        self.is_closed = False

    async def prepare(self) -> None:
        self.prepared += 1

    async def send(self, batch: Sequence[Exported], begin: str, *, is_repeat: bool) -> None:
        if self.fails:
            raise self.fails.pop(0)
        self.got += batch
        self.batches.append((len(batch), begin, is_repeat))

    async def close(self) -> None:
        self.is_closed = True

    @property
    def ids(self) -> list[str]:
        return [one.event.event_id for one in self.got]


class System:
    """A store with executions, and exports of it."""

    def __init__(self, place: Place, store: Store, control: LocalControlPlane) -> None:
        self.place, self.store, self.control = place, store, control
        self.clock = Clock()
        self.counts = ExportCounts(self.clock)

    async def execute(self, steps: int = 2) -> str:
        playbook = await register(self.store, chain(steps))
        found = await begin(self.control, playbook)
        async with workers(self.control):
            await ended(self.control, self.store, found)
        return found

    def export(self, target: Target, holder: str = "a", mask: ReaderMask | None = None) -> LogExport:
        triggers, derived = self.place.triggers(self.store), self.place.derived(self.store)
        parts = (self.store, triggers, derived, self.clock, (mask or ReaderMask()).event_json, self.counts)
        return LogExport(target, *parts, holder=holder)

    async def logged(self, *executions: str) -> list[Event]:
        return [event for one in executions for event in await self.store.read(one)]

    def metric(self, name: str) -> float:
        lines = page(self.counts.counted).decode().splitlines()
        (line,) = (one for one in lines if one.startswith(f'{name}{{target="list"}}'))
        return float(line.rpartition(" ")[2])


@asynccontextmanager
async def system(place: Place) -> AsyncIterator[System]:
    store = place.open()
    async with LocalControlPlane(store, RealClock()) as control:
        yield System(place, store, control)


async def test_every_event_arrives_in_order_with_the_path_of_its_playbook(place: Place) -> None:
    async with system(place) as found:
        first = await found.execute()
        target = Target(most=5)
        export = found.export(target)
        assert await export.export() == 1.0
        second = await found.execute(1)
        await export.export()
        assert [one.event for one in target.got] == await found.logged(first, second)
        assert {one.workflow for one in target.got} == {"tests/test"}
        assert target.prepared == 1
        assert [repeat for _, _, repeat in target.batches] == [True] + [False] * (len(target.batches) - 1)
        assert len({begin for _, begin, _ in target.batches}) == len(target.batches)
        assert found.metric("noetl_export_events_total") == len(target.got)
        assert found.metric("noetl_export_lag_seconds") == 0


async def test_a_server_that_starts_continues_where_the_last_one_was(place: Place) -> None:
    async with system(place) as found:
        first = await found.execute()
        target = Target()
        await found.export(target).export()
        seen = len(target.got)
        second = await found.execute()
        await found.export(target).export()
        assert target.ids[seen:] == [event.event_id for event in await found.logged(second)]
        assert target.ids[:seen] == [event.event_id for event in await found.logged(first)]


async def test_a_batch_whose_position_was_not_kept_is_marked_as_a_repeat(place: Place) -> None:
    async with system(place) as found:
        await found.execute()
        target = Target()
        export = found.export(target)

        class LostError(Exception):
            pass

        async def crash(*_: object) -> bool:
            raise LostError

        export._positions.advance = crash  # type: ignore[method-assign, assignment]
        with pytest.raises(LostError):
            await export.export()
        await found.export(target).export()
        (once, begin, _), (again, same, is_repeat) = target.batches
        assert (once, begin, True) == (again, same, is_repeat)


async def test_one_server_exports_at_a_time_and_another_takes_over(place: Place) -> None:
    async with system(place) as found:
        first = await found.execute()
        target = Target()
        one, other = found.export(target, "a"), found.export(target, "b")
        await one.export()
        second = await found.execute()
        assert await other.export() == 5.0  # it looks again later
        assert found.metric("noetl_export_events_total") == len(await found.logged(first))
        found.clock.at += 60_000  # the first one is gone
        await other.export()
        third = await found.execute()
        found.clock.at += 60_000
        await one.export()  # it comes back and reads the position anew
        assert target.ids == [event.event_id for event in await found.logged(first, second, third)]


async def test_a_stopped_server_hands_over_at_once(place: Place) -> None:
    async with system(place) as found:
        await found.execute()
        target = Target()
        running = asyncio.create_task(found.export(target, "a").run())
        async with asyncio.timeout(20):
            while not target.got:
                await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert target.is_closed
        assert await found.export(target, "b").export() == 1.0


async def test_a_target_of_some_types_gets_no_others(place: Place) -> None:
    async with system(place) as found:
        for _ in range(3):
            await found.execute()
        target = Target(wanted=frozenset(("playbook.started", "playbook.finished")))
        export = found.export(target)
        await export.export()
        assert [one.event.event_type for one in target.got] == ["playbook.started", "playbook.finished"] * 3
        await export.export()
        assert len(target.got) == 6


async def test_an_outage_is_one_warning_and_loses_nothing(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    async with system(place) as found:
        first = await found.execute()
        target = Target()
        target.fails = [ExportError("refused"), ExportError("refused"), ExceptionGroup("", [ExportError("refused")])]
        export = found.export(target)
        with caplog.at_level(logging.INFO):
            pauses = [await export._turn() for _ in range(3)]
            found.clock.at += 7_000
            assert found.metric("noetl_export_lag_seconds") > 6
            assert await export._turn() == 1.0
        assert pauses == [1.0, 2.0, 4.0]
        assert target.prepared == 4
        levels = [(one.levelname, "interrupted" in one.message) for one in caplog.records if "export to" in one.message]
        assert levels == [("WARNING", True), ("INFO", False)]
        assert target.ids == [event.event_id for event in await found.logged(first)]
        assert found.metric("noetl_export_failures_total") == 3
        assert found.metric("noetl_export_lag_seconds") == 0


async def test_a_target_that_is_broken_inside_is_tried_again(place: Place) -> None:
    async with system(place) as found:
        await found.execute()
        target = Target()
        target.fails = [ZeroDivisionError()]
        export = found.export(target)
        await export._turn()
        await export._turn()
        assert target.got


async def test_a_secret_name_hides_its_value(place: Place) -> None:
    async with system(place) as found:
        playbook = await register(found.store, chain(1))
        execution = await begin(found.control, playbook, payload={"api_token": "canary-1", "plain": "canary-2"})
        async with workers(found.control):
            await ended(found.control, found.store, execution)
        target = Target()
        await found.export(target).export()
        text = "".join(one.payload for one in target.got)
        assert "canary-2" in text
        assert "canary-1" not in text
