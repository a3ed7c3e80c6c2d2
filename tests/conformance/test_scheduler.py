"""Schedules fire once on every store: late, overlapping, after a crash, by many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from noetl.model.errors import StoreUnavailable
from noetl.model.messages import AnyMessage, Start
from noetl.ports import Audit, Selection
from noetl.ports.schedules import Firing, Schedule, Schedules
from noetl.schedules.spec import ScheduleSpec
from noetl.server.background.schedules import Scheduler
from noetl.server.control_plane import LocalControlPlane
from noetl.server.operations.schedules import apply as change
from noetl.server.operations.schedules import backfill, paused, resumed
from tests.conformance.conftest import Place, Store
from tests.unit.server.system import HEAD, RealClock, ended, register, workers

pytestmark = pytest.mark.asyncio
MINUTE = 60_000
T0 = 1_790_000_040_000  # a whole minute
BOOK = HEAD + "workload: {day: ''}\nworkflow:\n  - {step: one, tool: {kind: noop}}\n"
STRICT = HEAD + (
    "executor: {spec: {workload_schema: {type: object, properties: {n: {type: integer}}}}}\n"
    "workflow:\n  - {step: one, tool: {kind: noop}}\n"
)


class Hand(RealClock):
    """Clock whose time of day stands still until the test moves it."""

    def __init__(self) -> None:
        super().__init__()
        self.at = T0

    def civil(self) -> int:
        return self.at


class Line:
    """A scheduler on a store, and what the test asks of both."""

    def __init__(self, place: Place, store: Store, control: LocalControlPlane, clock: Hand) -> None:
        self.store, self.control, self.clock = store, control, clock
        self.schedules: Schedules = place.schedules(store)
        self.place = place
        self.scheduler = self.another("a")

    def another(self, holder: str, submit: Any = None) -> Scheduler:
        derived = self.place.derived(self.store)
        chosen = submit or self.control.submit
        return Scheduler(self.schedules, self.store, derived, chosen, self.clock, holder=holder)

    async def add(self, book: str = BOOK, **more: Any) -> None:
        await register(self.store, book)
        spec = ScheduleSpec(**{"every": "1m", **more})
        await self.schedules.add(Schedule("s", "tests/test", spec, next_at=T0 + MINUTE, start_at=T0 + MINUTE))

    async def at(self, minutes: float) -> list[tuple[float, str, str]]:
        """Look at a minute; return time, state and reason of all firings, oldest first."""
        self.clock.at = T0 + round(minutes * MINUTE)
        await self.scheduler.look()
        return await self.told()

    async def told(self) -> list[tuple[float, str, str]]:
        found = await self.schedules.firings("s")
        return [((one.at - T0) / MINUTE, one.state, one.reason) for one in reversed(found)]

    async def executions(self) -> list[str]:
        return [str(row["execution_id"]) for row in reversed(await self.store.executions(Selection(limit=1_000)))]

    async def finish(self) -> None:
        """Run every execution to its end."""
        async with workers(self.control):
            for name in await self.executions():
                await ended(self.control, self.store, name)
        await self.schedules.settle()


@asynccontextmanager
async def line(place: Place) -> AsyncIterator[Line]:
    store = place.open()
    async with LocalControlPlane(store, RealClock()) as control:
        yield Line(place, store, control, Hand())


async def test_a_firing_starts_one_execution_with_its_time(place: Place) -> None:
    async with line(place) as a:
        await a.add(payload={"n": 1}, time_as="day", timezone="Europe/Vienna")
        assert await a.at(0.9) == []
        assert await a.at(1) == [(1, "started", "")]
        assert await a.at(1.5) == [(1, "started", "")]
        [name] = await a.executions()
        [first, *_] = await a.store.read(name)
        assert first.payload["payload"] == {"n": 1, "day": "2026-09-21T16:15:00+02:00"}
        assert first.payload["tags"] == ["schedule:s"]
        [entry] = await place.team(a.store).audited()
        assert (entry.actor, entry.action, entry.entity) == ("schedule:s", "execution.start", name)
        schedule = await a.schedules.schedule("s")
        assert schedule is not None
        assert (schedule.next_at, schedule.start_at) == (T0 + 2 * MINUTE, T0 + 2 * MINUTE)
        await a.finish()
        assert await a.at(1.6) == [(1, "ended", "")]


async def test_many_servers_fire_once(place: Place) -> None:
    async with line(place) as a, line(place) as b, line(place) as c:
        await a.add(overlap="allow")
        for minute in range(1, 6):
            for one in (a, b, c):
                one.clock.at = T0 + minute * MINUTE
            schedule = await a.schedules.schedule("s")
            assert schedule is not None
            await asyncio.gather(*(one.scheduler.record(schedule, a.clock.at) for one in (a, b, c)))
            await asyncio.gather(*(one.scheduler.decide() for one in (a, b, c)))  # as if each had the duty
        assert [at for at, state, _ in await a.told() if state == "started"] == [1, 2, 3, 4, 5]
        assert len(await a.executions()) == 5


async def test_a_server_without_the_duty_leaves_it_to_the_other(place: Place) -> None:
    async with line(place) as a:
        await a.add()
        assert len(await a.at(1)) == 1
        a.clock.at = T0 + 2 * MINUTE
        await a.another("b").look()
        assert len(await a.told()) == 1


@pytest.mark.parametrize("crash", ["before", "after"])
async def test_a_crash_around_the_start_neither_loses_nor_doubles(place: Place, crash: str) -> None:
    async with line(place) as a:
        await a.add()

        async def dies(execution_id: str, message: AnyMessage, act: Audit) -> Mapping[str, Any]:
            if crash == "after":
                await a.control.submit(execution_id, message, act)
            raise StoreUnavailable("the server is gone")

        a.clock.at = T0 + MINUTE
        with pytest.raises(StoreUnavailable):
            await a.another("a", dies).look()
        assert await a.told() == [(1, "due", "")]
        if crash == "after":  # also if the execution has ended, or the schedule was paused since
            await a.finish()
            schedule = await a.schedules.schedule("s")
            assert schedule is not None
            await a.schedules.save(replace(schedule, paused=True))
        await a.scheduler.look()
        assert [state for _, state, _ in await a.told()] == ["started"]
        assert len(await a.executions()) == 1


async def test_an_id_that_another_execution_has_is_replaced(place: Place) -> None:
    async with line(place) as a:
        await a.add()
        playbook = await a.store.content_hash("tests/test", None)
        assert playbook is not None
        await a.control.submit("77", Start("other", "tests/test", playbook))
        schedule = await a.schedules.schedule("s")
        assert schedule is not None
        await a.schedules.save(replace(schedule, next_at=None, start_at=None), [Firing("s", T0, execution_id="77")])
        assert await a.at(1) == [(0, "due", "")]
        assert await a.at(1) == [(0, "started", "")]
        assert len(await a.executions()) == 2


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ("skip", [(1, "skipped", "late"), (4, "started", "")]),
        ("last", [(1, "skipped", "late"), (4, "started", "")]),
        ("all", [(1, "started", ""), (2, "started", ""), (3, "started", ""), (4, "started", "")]),
    ],
)
async def test_what_was_missed_is_caught_up_or_explained(place: Place, catch_up: str, expected: list[Any]) -> None:
    async with line(place) as a:
        await a.add(catch_up=catch_up, overlap="allow")
        assert await a.at(4.5) == expected  # no server ran for three firings
        if catch_up != "all":
            [*_, missed] = await a.schedules.firings("s")
            assert (missed.count, missed.last_at) == (3, T0 + 3 * MINUTE)
            assert f"`catch_up` is `{catch_up}`" in missed.detail


async def test_overlap_skip_says_what_was_running(place: Place) -> None:
    async with line(place) as a:
        await a.add(overlap="skip")
        await a.at(1)
        assert await a.at(2) == [(1, "started", ""), (2, "skipped", "overlap")]
        [name] = await a.executions()
        assert name in (await a.schedules.firings("s"))[0].detail
        await a.finish()
        assert (await a.at(3))[-1] == (3, "started", "")


async def test_overlap_queue_starts_one_after_the_other(place: Place) -> None:
    async with line(place) as a:
        await a.add(overlap="queue")
        await a.at(1)
        await a.at(2)
        assert [state for _, state, _ in await a.at(3)] == ["started", "queued", "queued"]
        await a.finish()
        assert [state for _, state, _ in await a.at(3.1)] == ["ended", "started", "queued"]
        await a.finish()
        assert [state for _, state, _ in await a.at(3.2)] == ["ended", "ended", "started"]
        assert len(await a.executions()) == 3


async def test_overlap_cancel_running_starts_when_the_other_has_ended(place: Place) -> None:
    async with line(place) as a:
        await a.add(overlap="cancel_running")
        await a.at(1)
        assert [state for _, state, _ in await a.at(2)] == ["started", "queued"]
        [first] = await a.executions()
        row = await ended(a.control, a.store, first)
        assert row["status"] == "cancelled"
        assert [state for _, state, _ in await a.at(2.1)] == ["ended", "started"]
        assert len(await a.executions()) == 2


async def test_a_refused_start_says_why(place: Place) -> None:
    async with line(place) as a:
        await a.add(STRICT, payload={"n": "many"})
        assert await a.at(1) == [(1, "refused", "refused")]
        assert "n" in (await a.schedules.firings("s"))[0].detail
        await a.store.unregister("tests/test", None)
        assert await a.at(2) == [(1, "refused", "refused"), (2, "refused", "refused")]
        assert "no `tests/test`" in (await a.schedules.firings("s"))[0].detail
        assert await a.executions() == []


async def test_a_firing_beyond_a_limit_that_rejects_is_skipped(place: Place) -> None:
    async with line(place) as a:
        limited = BOOK.replace("workload:", "executor: {spec: {concurrency: {on_limit: reject}}}\nworkload:")
        await a.add(limited, overlap="allow")
        assert await a.at(1) == [(1, "started", "")]
        assert await a.at(2) == [(1, "started", ""), (2, "skipped", "limit")]


async def test_times_that_cannot_be_computed_pause_the_schedule(place: Place) -> None:
    async with line(place) as a:
        await a.add()
        schedule = await a.schedules.schedule("s")
        assert schedule is not None
        await a.schedules.save(replace(schedule, spec=ScheduleSpec(cron="@daily", timezone="Mars/North")))
        assert await a.at(1) == [(1, "refused", "refused")]
        assert await a.at(2) == [(1, "refused", "refused")]
        found = await a.schedules.schedule("s")
        assert found is not None
        assert found.paused


async def test_a_clock_set_back_fires_nothing_twice(place: Place) -> None:
    async with line(place) as a:
        await a.add(overlap="allow")
        await a.at(1)
        await a.at(2)
        await a.at(0.5)
        assert await a.at(2.5) == [(1, "started", ""), (2, "started", "")]


DAY = 1_440 * MINUTE


async def backfilled(a: Line, days: int, at_once: int) -> str:
    """Make a backfill of the days before now."""
    await a.add(every="1d", overlap="allow", time_as="day")
    old = await a.schedules.schedule("s")
    assert old is not None
    made = backfill(old, T0 - days * DAY, T0, at_once, "ada", T0)
    assert await a.schedules.add(made)
    assert not await a.schedules.add(made)  # the same range is the same backfill
    return made.schedule_id


async def test_a_backfill_runs_a_few_at_once_and_goes_on_after_a_pause(place: Place) -> None:
    async with line(place) as a:
        name = await backfilled(a, 5, 2)
        await a.scheduler.look()
        await a.scheduler.look()
        assert await a.schedules.tally(name) == {"failed": 0, "started": 2}
        await change(a.schedules, name, paused(T0))
        await a.finish()
        await a.scheduler.look()
        assert await a.schedules.tally(name) == {"failed": 0, "ended": 2}
        await change(a.schedules, name, resumed(T0))
        for _ in range(3):
            await a.scheduler.look()
            await a.finish()
        assert await a.schedules.tally(name) == {"failed": 0, "ended": 5}
        schedule = await a.schedules.schedule(name)
        assert schedule is not None
        assert schedule.next_at is None
        assert await a.schedules.forget(T0) == 0  # it was decided now, whatever its times are
        days = [(await a.store.read(one, 0, 1))[0].payload["payload"]["day"] for one in await a.executions()]
        assert len(set(days)) == 5


async def test_a_backfill_of_a_year_that_is_killed_goes_on_without_a_double(place: Place) -> None:
    async with line(place) as a:
        name, number = await backfilled(a, 365, 100), 0

        async def dies(execution_id: str, message: AnyMessage, act: Audit) -> Mapping[str, Any]:
            nonlocal number
            number += 1
            if number % 37 == 0:
                raise StoreUnavailable  # as a server that is killed before the start
            row = await a.control.submit(execution_id, message, act)
            if number % 53 == 0:
                raise StoreUnavailable  # or after it, before that is recorded
            return row

        dying = 0
        while (await a.schedules.tally(name)).get("ended", 0) < 365:
            try:
                await a.another("a", dies).look()
            except StoreUnavailable:
                dying += 1
            else:
                await a.finish()
        assert dying > 10
        assert len(await a.executions()) == 365
        firings = await a.schedules.firings(name, limit=1_000)
        assert [one.at for one in firings] == sorted({one.at for one in firings}, reverse=True)
        assert {one.execution_id for one in firings} == set(await a.executions())
