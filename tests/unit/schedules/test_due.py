"""Due firings: on time, late, caught up, with jitter; nothing lost, nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.schedules.due import MOST_COUNTED, MOST_STARTS, Due, Missed, between, due, start_at
from noetl.schedules.spec import CatchUp, ScheduleSpec
from noetl.schedules.times import times_of

MINUTE = 60_000
HOUR = 60 * MINUTE
T0 = 500_000 * HOUR


def spec(catch_up: CatchUp = "skip", every: str = "1h", jitter: str = "0") -> ScheduleSpec:
    return ScheduleSpec(every=every, catch_up=catch_up, jitter=jitter)


def look(one: ScheduleSpec, now: int, next_at: int = T0) -> Due:
    return due(one, times_of(one), "s", next_at, now)


def test_nothing_is_due_before_its_time() -> None:
    assert look(spec(), T0 - 1) == Due((), None, T0)


@pytest.mark.parametrize("catch_up", ["skip", "last", "all"])
def test_a_firing_on_time_starts(catch_up: CatchUp) -> None:
    assert look(spec(catch_up), T0 + MINUTE - 1) == Due((T0,), None, T0 + HOUR)


@pytest.mark.parametrize(
    ("catch_up", "starts", "missed"),
    [
        ("skip", (), Missed(T0, T0 + 2 * HOUR, 3)),
        ("last", (T0 + 2 * HOUR,), Missed(T0, T0 + HOUR, 2)),
        ("all", (T0, T0 + HOUR, T0 + 2 * HOUR), None),
    ],
)
def test_a_server_that_was_down_over_three_firings(catch_up: CatchUp, starts: tuple[int, ...], missed: Missed) -> None:
    assert look(spec(catch_up), T0 + 2 * HOUR + 30 * MINUTE) == Due(starts, missed, T0 + 3 * HOUR)


@pytest.mark.parametrize("catch_up", ["skip", "last"])
def test_a_firing_on_time_makes_late_ones_needless(catch_up: CatchUp) -> None:
    assert look(spec(catch_up), T0 + HOUR) == Due((T0 + HOUR,), Missed(T0, T0, 1), T0 + 2 * HOUR)


def test_one_late_firing_is_the_last_one() -> None:
    assert look(spec("last"), T0 + 5 * MINUTE) == Due((T0,), None, T0 + HOUR)


def test_a_clock_that_jumps_ten_years_ahead() -> None:
    now = T0 + 10 * 365 * 24 * HOUR + 30 * MINUTE
    found = look(spec("last", "1m"), now)
    assert found.starts == (now,)
    assert found.missed == Missed(T0, now - MINUTE, MOST_COUNTED, is_more=True)
    assert look(spec("skip"), now).starts == ()


def test_all_are_started_look_by_look() -> None:
    one, now, next_at, looks = spec("all", "1s"), T0 + 250_000, T0, 0
    starts: list[int] = []
    while next_at <= now:
        found = look(one, now, next_at)
        assert len(found.starts) <= MOST_STARTS
        starts += found.starts
        assert found.next_at is not None
        next_at, looks = found.next_at, looks + 1
    assert starts == list(range(T0, now + 1, 1000))
    assert looks == 3


def test_jitter_delays_every_start_by_the_same_part_at_every_server() -> None:
    one = spec(jitter="10m")
    delays = {start_at(one, name, T0) - T0 for name in map(str, range(50))}
    assert len(delays) > 40
    assert all(0 <= delay < 10 * MINUTE for delay in delays)
    begin = start_at(one, "s", T0)
    assert look(one, begin - 1).starts == ()
    assert look(one, begin).starts == (T0,)
    assert look(one, T0 + 10 * MINUTE).starts == (T0,)  # not late: its start may be that late


def test_times_that_were_passed_over_are_counted() -> None:
    times = times_of(spec())
    assert between(times, T0, T0 + 5 * MINUTE) == Missed(T0, T0, 1)
    assert between(times, T0, T0 - 1) is None
    assert between(times, T0 - 5, T0 + 2 * HOUR) == Missed(T0, T0 + 2 * HOUR, 3)


@settings(max_examples=100, deadline=None)
@given(
    catch_up=st.sampled_from(["skip", "last", "all"]),
    jitter=st.sampled_from(["0", "30s", "20m"]),
    steps=st.lists(st.integers(-3 * HOUR, 5 * HOUR), min_size=1, max_size=30),
)
def test_every_time_starts_or_is_missed_once_whatever_the_clock_does(
    catch_up: CatchUp, jitter: str, steps: list[int]
) -> None:
    one = spec(catch_up, "20m", jitter)
    times = times_of(one)
    now, next_at = T0 - 1, T0
    told: list[int] = []
    for step in steps:
        now += step
        found = due(one, times, "s", next_at, now)
        if found.missed is not None:
            told += range(found.missed.first, found.missed.last + 1, 20 * MINUTE)
        told += found.starts
        assert found.next_at is not None
        next_at = found.next_at
    assert told == list(range(T0, next_at, 20 * MINUTE))
