"""Every table of schedules: changed by one, recorded and decided once, forgotten."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from noetl.ports import AuditEntry
from noetl.ports.schedules import Firing, Schedule, Schedules
from noetl.schedules.spec import Calendar, ScheduleSpec
from tests.conformance.commits import commit
from tests.conformance.conftest import Place

pytestmark = pytest.mark.asyncio
SPEC = ScheduleSpec(cron="0 2 * * *", timezone="Europe/Vienna", overlap="queue", payload={"é": [1, None]})
NIGHTLY = Schedule("nightly", "a/b", SPEC, 3, "a/b", next_at=100, start_at=110, created_at=5, created_by="ann")


@pytest.fixture
def schedules(place: Place) -> Schedules:
    return place.schedules(place.open())


async def stored(schedules: Schedules, name: str = "nightly") -> Schedule:
    found = await schedules.schedule(name)
    assert found is not None
    return found


async def test_a_schedule_is_kept_as_it_was_added(schedules: Schedules) -> None:
    assert await schedules.add(NIGHTLY)
    assert await stored(schedules) == replace(NIGHTLY, revision=1)
    assert not await schedules.add(replace(NIGHTLY, path="other"))
    plain = Schedule("by-days", "c", ScheduleSpec(calendar=Calendar(("12-24",))), paused=True)
    assert await schedules.add(plain)
    assert await stored(schedules, "by-days") == replace(plain, revision=1)
    assert await schedules.schedule("none") is None


async def test_schedules_are_listed_by_id_path_and_owner(schedules: Schedules) -> None:
    for name, path, owner in (("c", "p", ""), ("A", "p", "p"), ("b", "q", "")):
        await schedules.add(Schedule(name, path, SPEC, owner=owner))
    assert [one.schedule_id for one in await schedules.schedules()] == ["A", "b", "c"]
    assert [one.schedule_id for one in await schedules.schedules(path="p")] == ["A", "c"]
    assert [one.schedule_id for one in await schedules.schedules(owner="p")] == ["A"]
    assert [one.schedule_id for one in await schedules.schedules(owner="")] == ["b", "c"]
    assert [one.schedule_id for one in await schedules.schedules(after="A", limit=1)] == ["b"]


async def test_one_of_many_moves_a_schedule_on(place: Place) -> None:
    tables = [place.schedules(place.open()) for _ in range(3)]
    await tables[0].add(NIGHTLY)
    seen = await stored(tables[0])
    moves = [
        one.save(replace(seen, next_at=200 + number), [Firing("nightly", 100, execution_id=str(number))])
        for number, one in enumerate(tables)
    ]
    won = await asyncio.gather(*moves)
    assert sorted(won) == [False, False, True]
    winner = won.index(True)
    assert (await stored(tables[0])).next_at == 200 + winner
    [firing] = await tables[1].undecided(("", 0), 10)
    assert firing == Firing("nightly", 100, execution_id=str(winner))


async def test_a_recorded_time_is_not_recorded_again(schedules: Schedules) -> None:
    await schedules.add(NIGHTLY)
    await schedules.save(await stored(schedules), [Firing("nightly", 100, execution_id="7")])
    await schedules.save(await stored(schedules), [Firing("nightly", 100, execution_id="8"), Firing("nightly", 200)])
    assert [(one.at, one.execution_id) for one in await schedules.firings("nightly")] == [(200, ""), (100, "7")]


async def test_due_are_those_that_start_by_now_and_are_not_paused(schedules: Schedules) -> None:
    for name, start, paused in (("a", 30, False), ("b", 10, False), ("c", 20, True), ("d", None, False)):
        await schedules.add(Schedule(name, "p", SPEC, paused=paused, next_at=start, start_at=start))
    assert [one.schedule_id for one in await schedules.due(30, 9)] == ["b", "a"]
    assert [one.schedule_id for one in await schedules.due(29, 9)] == ["b"]
    assert [one.schedule_id for one in await schedules.due(99, 1)] == ["b"]


async def test_a_firing_is_decided_once(schedules: Schedules) -> None:
    await schedules.add(NIGHTLY)
    due = Firing("nightly", 100, execution_id="7")
    await schedules.save(await stored(schedules), [due, Firing("nightly", 200), Firing("nightly", 300)])
    assert await schedules.decide(replace(due, state="queued"))
    skipped = replace(
        due, state="skipped", reason="overlap", detail="é", last_at=5, count=9, is_more=True, decided_at=4
    )
    assert await schedules.decide(skipped)
    assert not await schedules.decide(replace(due, state="started"))
    assert not await schedules.decide(Firing("nightly", 999))
    assert (await schedules.firings("nightly"))[-1] == skipped
    assert [one.at for one in await schedules.undecided(("", 0), 9)] == [200, 300]
    assert [one.at for one in await schedules.undecided(("nightly", 200), 9)] == [300]
    assert [one.at for one in await schedules.firings("nightly", before=300, limit=1)] == [200]


async def test_a_firing_runs_until_its_execution_has_ended(place: Place) -> None:
    store = place.open()
    schedules = place.schedules(store)
    await schedules.add(NIGHTLY)
    names = ["11", "12", "13"]
    firings = [Firing("nightly", number, execution_id=name) for number, name in enumerate(names)]
    await schedules.save(await stored(schedules), firings)
    await store.commit([commit("11", projection={"status": "running"}), commit("12", projection={"status": "running"})])
    for firing in firings:
        await schedules.decide(replace(firing, state="started"))
    assert await schedules.settle() == 1  # the third execution was deleted
    assert [one.execution_id for one in await schedules.running("nightly")] == ["11", "12"]
    await store.commit([commit("11", at=1, projection={"status": "failed", "ended_at": 9})])
    assert await schedules.settle() == 1
    assert [one.execution_id for one in await schedules.running("nightly")] == ["12"]
    assert await schedules.settle() == 0
    assert [one.state for one in await schedules.firings("nightly")] == ["ended", "started", "ended"]


async def test_a_removed_schedule_takes_its_firings_along(schedules: Schedules) -> None:
    await schedules.add(NIGHTLY)
    await schedules.save(await stored(schedules), [Firing("nightly", 100)])
    assert await schedules.remove("nightly")
    assert not await schedules.remove("nightly")
    await schedules.add(NIGHTLY)
    assert await schedules.firings("nightly") == []


async def test_old_firings_are_forgotten_unless_they_are_open(schedules: Schedules) -> None:
    await schedules.add(NIGHTLY)
    states = ("due", "queued", "started", "ended", "skipped", "refused")
    await schedules.save(await stored(schedules), [Firing("nightly", at, state) for at, state in enumerate(states)])
    assert await schedules.forget(5) == 2
    assert [one.state for one in await schedules.firings("nightly")] == ["refused", "started", "queued", "due"]


async def test_changes_are_audited_with_what_they_change(place: Place) -> None:
    store = place.open()
    schedules, team = place.schedules(store), place.team(store)
    entries = [AuditEntry(number, "ann", f"act{number}", "nightly") for number in range(6)]
    await schedules.add(NIGHTLY, entries[0])
    await schedules.add(NIGHTLY, entries[1])
    await schedules.save(await stored(schedules), act=entries[2])
    await schedules.save(NIGHTLY, act=entries[3])
    await schedules.remove("nightly", entries[4])
    await schedules.remove("nightly", entries[5])
    assert [entry.action for entry in await team.audited()] == ["act4", "act2", "act0"]


async def test_schedules_of_namespaces_are_listed(schedules: Schedules) -> None:
    for name, path in (("c", "a/x"), ("d", "ab/x"), ("e", "b/x"), ("f", "a/y")):
        await schedules.add(Schedule(name, path, SPEC))
    assert [one.schedule_id for one in await schedules.schedules(within=["a/"])] == ["c", "f"]
    assert [one.schedule_id for one in await schedules.schedules(within=["a/", "b/"], after="c", limit=1)] == ["e"]
    assert await schedules.schedules(within=[]) == []
