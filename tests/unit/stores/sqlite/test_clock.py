"""The clock of a file: shared by its processes, kept over restarts, set when idle."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from noetl.stores.sqlite import clock as file_clock
from noetl.stores.sqlite.store import SqliteStore
from tests.conformance.commits import commit, put, work

HOUR = 3_600_000
pytestmark = pytest.mark.asyncio


class Machine:
    """The machine of a test: what its system clock is ahead, and its boot."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead, self.boot, self.slept = 0, "first", 0
        time_ns, clock_gettime_ns = time.time_ns, time.clock_gettime_ns
        monkeypatch.setattr(time, "time_ns", lambda: time_ns() + self.ahead * 1_000_000)
        monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: clock_gettime_ns(clock) + self.slept * 1_000_000)
        monkeypatch.setattr(file_clock, "_boot", lambda: self.boot)

    def wall(self) -> int:
        return time.time_ns() // 1_000_000


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def near(time: int, other: int) -> bool:
    return abs(time - other) < 60_000


async def test_processes_share_the_time_of_a_busy_file(tmp_path: Path, machine: Machine) -> None:
    first = SqliteStore(tmp_path / "noetl.db")
    await first.commit([put(work("a"))])
    machine.ahead = HOUR
    second = SqliteStore(tmp_path / "noetl.db")
    assert second.clock.offset == first.clock.offset
    assert near(second.clock.now(), machine.wall() - HOUR)
    assert near(second.clock.civil(), machine.wall())
    await first.close()
    await second.close()


@pytest.mark.parametrize("ahead", [HOUR, -HOUR, -24 * HOUR])
async def test_a_clock_that_is_set_is_adopted_when_nothing_has_a_deadline(
    tmp_path: Path, machine: Machine, ahead: int
) -> None:
    first, second = SqliteStore(tmp_path / "noetl.db"), SqliteStore(tmp_path / "noetl.db")
    await second.version()
    await first.commit([put(work("a"))])
    [lease] = await first.claim("w", [""], 1, first.clock.now(), first.clock.now() + 1_000)
    machine.ahead = ahead
    before = first.clock.offset
    await first.version()
    assert first.clock.offset == before
    await first.commit([commit(at=1, finished=((lease.work.work_id, lease.epoch),))])
    machine.slept = 2_000  # it is tried every second
    machine.ahead += 2_000
    await first.version()
    assert near(first.clock.now(), machine.wall())
    await second.version()
    assert second.clock.offset == first.clock.offset
    await first.close()
    await second.close()


async def test_two_machines_that_disagree_do_not_set_the_time_in_turns(tmp_path: Path, machine: Machine) -> None:
    machine.ahead = HOUR
    first = SqliteStore(tmp_path / "noetl.db")
    machine.ahead = -HOUR
    second = SqliteStore(tmp_path / "noetl.db")
    assert near(second.clock.now(), machine.wall())
    machine.ahead = HOUR  # the first one sees its own clock, which was never set
    for _ in range(3):
        machine.slept += 2_000
        machine.ahead += 2_000
        await first.version()
    assert first.clock.offset == second.clock.offset
    assert near(first.clock.now(), machine.wall() - 2 * HOUR)
    await first.close()
    await second.close()


@pytest.mark.parametrize("is_open", [True, False])
async def test_a_restart_with_another_clock_keeps_the_deadlines(
    tmp_path: Path, machine: Machine, is_open: bool
) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    until = store.clock.now() + 60_000
    await store.commit([commit(timers=(("deadline:a#1" if is_open else "until:a#1", until),))])
    await store.close()
    machine.ahead = -24 * HOUR
    store = SqliteStore(tmp_path / "noetl.db")
    assert near(store.clock.now(), until - 60_000) is is_open
    assert near(store.clock.now(), machine.wall()) is not is_open
    await store.close()


async def test_after_a_reboot_the_system_clock_decides_but_time_does_not_go_back(
    tmp_path: Path, machine: Machine
) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    begun = store.clock.now()
    await store.commit([put(work("a"))])
    await store.claim("w", [""], 1, begun, begun + 24 * HOUR)
    last = (await store.read("1"))[-1].timestamp
    await store.close()
    machine.boot, machine.ahead = "second", HOUR
    store = SqliteStore(tmp_path / "noetl.db")
    assert near(store.clock.now(), machine.wall())
    assert len(await store.expired(store.clock.now() + 30_000, 5)) == 1
    await store.close()
    machine.boot, machine.ahead = "third", last - begun - HOUR  # before the last event
    store = SqliteStore(tmp_path / "noetl.db")
    assert store.clock.now() >= last
    await store.close()


async def test_a_sleeping_machine_counts_the_time(tmp_path: Path, machine: Machine) -> None:
    store = SqliteStore(tmp_path / "noetl.db")
    before = store.clock.now()
    machine.slept = machine.ahead = 8 * HOUR
    await store.version()
    assert near(store.clock.now(), before + 8 * HOUR)
    assert near(store.clock.now(), machine.wall())
    await store.close()
