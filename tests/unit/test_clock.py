"""The clock of a process: steady, corrected only by its authority; skew."""

from __future__ import annotations

import logging
import time

import pytest

from noetl.clock import SteadyClock, uptime


class System:
    """The system clock of a test: a shift of the real one, in milliseconds."""

    ahead = 0

    def __init__(self) -> None:
        self._time_ns = time.time_ns

    def __call__(self) -> int:
        return self._time_ns() + self.ahead * 1_000_000


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    found = System()
    monkeypatch.setattr(time, "time_ns", found)
    return found


@pytest.mark.parametrize("ahead", [3_600_000, -3_600_000, -86_400_000])
def test_time_goes_on_whatever_the_system_clock_is_set_to(system: System, ahead: int) -> None:
    clock = SteadyClock()
    before, civil = clock.now(), clock.civil()
    system.ahead = ahead
    assert 0 <= clock.now() - before < 60_000
    assert 0 <= clock.civil() - civil - ahead < 60_000


def test_the_authority_is_right_within_the_round_trip(system: System) -> None:
    clock = SteadyClock("the database's clock")
    system.ahead = 600_000
    clock.follow(uptime() - 100, 5_000_000)
    assert abs(clock.now() - 5_000_050) < 1_000
    offset = clock.offset
    clock.follow(uptime() - 10_000, 4_995_000)  # a slow answer tells nothing new
    assert clock.offset == offset
    clock.follow(uptime(), 9_000_000)  # set by hours
    assert abs(clock.now() - 9_000_000) < 1_000
    assert abs(clock.civil() - clock.now()) < 1_000


def test_a_small_error_is_corrected_to_the_bound_only() -> None:
    clock = SteadyClock("the database's clock")
    clock.follow(uptime(), 5_000_000)
    before, asked = clock.offset, uptime()
    clock.follow(asked, asked + before + 300)
    assert 200 < clock.offset - before <= 301


def test_skew_is_logged_once_when_it_begins_and_when_it_ends(system: System, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = SteadyClock("the database's clock")
    clock.watch()
    assert clock.report == "ok"
    system.ahead = -600_000
    clock.watch()
    clock.watch()
    assert "600.0 s behind the database's clock." in clock.report
    system.ahead = 0
    clock.watch()
    clock.watch()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
