"""Times of schedules: changes of the clocks, leap days, ten years, any moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.schedules.due import upcoming
from noetl.schedules.spec import Calendar, ScheduleSpec
from noetl.schedules.times import latest, times_of

NEW_YORK = "America/New_York"


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def seen(spec: ScheduleSpec, after: str, count: int) -> list[str]:
    """Return local times after a moment."""
    found = islice(upcoming(times_of(spec), ms(after)), count)
    return [datetime.fromtimestamp(at / 1000, ZoneInfo(spec.timezone)).isoformat() for at in found]


def cron(expression: str, zone: str = "UTC") -> ScheduleSpec:
    return ScheduleSpec(cron=expression, timezone=zone)


def test_a_time_that_the_clocks_skip_fires_when_they_change() -> None:
    assert seen(cron("30 2 * * *", NEW_YORK), "2026-03-07T00:00-05:00", 3) == [
        "2026-03-07T02:30:00-05:00",
        "2026-03-08T03:00:00-04:00",
        "2026-03-09T02:30:00-04:00",
    ]


def test_a_time_that_the_clocks_repeat_fires_once() -> None:
    expected = ["2026-11-01T01:15:00-04:00", "2026-11-02T01:15:00-05:00"]
    assert seen(cron("15 1 * * *", NEW_YORK), "2026-10-31T12:00-04:00", 2) == expected
    # A schedule that is made in the second hour does not fire for the first one.
    assert seen(cron("15 1 * * *", NEW_YORK), "2026-11-01T01:05-05:00", 1) == expected[1:]


def test_a_cron_without_fixed_hour_follows_the_elapsed_time() -> None:
    assert seen(cron("0 * * * *", NEW_YORK), "2026-11-01T00:30-04:00", 4) == [
        "2026-11-01T01:00:00-04:00",
        "2026-11-01T01:00:00-05:00",
        "2026-11-01T02:00:00-05:00",
        "2026-11-01T03:00:00-05:00",
    ]
    assert seen(cron("*/30 * * * *", NEW_YORK), "2026-03-08T01:15-05:00", 3) == [
        "2026-03-08T01:30:00-05:00",
        "2026-03-08T03:00:00-04:00",
        "2026-03-08T03:30:00-04:00",
    ]


def test_a_change_of_half_an_hour() -> None:
    assert seen(cron("15 2 * * *", "Australia/Lord_Howe"), "2026-10-03T12:00+10:30", 2) == [
        "2026-10-04T02:30:00+11:00",
        "2026-10-05T02:15:00+11:00",
    ]


def test_a_leap_day() -> None:
    expected = ["2028-02-29T00:00:00+00:00", "2032-02-29T00:00:00+00:00"]
    assert seen(cron("0 0 29 2 *"), "2026-01-01T00:00+00:00", 2) == expected
    yearly = ScheduleSpec(calendar=Calendar(("02-29",)))
    assert seen(yearly, "2026-01-01T00:00+00:00", 2) == expected


def test_a_calendar_has_days_of_one_year_and_of_every_year() -> None:
    spec = ScheduleSpec(calendar=Calendar(("2026-12-24", "01-06"), ("18:00", "08:30")), timezone="Europe/Vienna")
    assert seen(spec, "2026-12-24T12:00+01:00", 4) == [
        "2026-12-24T18:00:00+01:00",
        "2027-01-06T08:30:00+01:00",
        "2027-01-06T18:00:00+01:00",
        "2028-01-06T08:30:00+01:00",
    ]
    once = ScheduleSpec(calendar=Calendar(("2026-12-24",)))
    assert seen(once, "2026-01-01T00:00+00:00", 9) == ["2026-12-24T00:00:00+00:00"]


def test_a_calendar_at_a_change_of_the_clocks() -> None:
    spec = ScheduleSpec(calendar=Calendar(("2026-03-08", "2026-11-01"), ("01:15", "02:30")), timezone=NEW_YORK)
    assert seen(spec, "2026-03-01T00:00+00:00", 9) == [
        "2026-03-08T01:15:00-05:00",
        "2026-03-08T03:00:00-04:00",
        "2026-11-01T01:15:00-04:00",
        "2026-11-01T02:30:00-05:00",
    ]


def test_an_interval_counts_elapsed_time() -> None:
    assert seen(ScheduleSpec(every="90m", timezone=NEW_YORK), "2026-03-08T05:00+00:00", 3) == [
        "2026-03-08T01:00:00-05:00",
        "2026-03-08T03:30:00-04:00",
        "2026-03-08T05:00:00-04:00",
    ]


@pytest.mark.parametrize("zone", ["Europe/Vienna", NEW_YORK, "Australia/Lord_Howe", "Asia/Kolkata", "UTC"])
@pytest.mark.parametrize("clock", ["30 2 * * *", "0 0 * * *", "15 1 * * *"])
def test_ten_years_have_one_firing_a_day(zone: str, clock: str) -> None:
    begin = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))
    until = datetime(2036, 1, 1, tzinfo=ZoneInfo(zone))
    found = []
    for at in upcoming(times_of(cron(clock, zone)), int(begin.timestamp() * 1000) - 1):
        if at >= until.timestamp() * 1000:
            break
        found.append(datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).date())
    first = begin.date()
    assert found == [first + timedelta(days=number) for number in range((until.date() - first).days)]


SPECS = [
    cron("* * * * *", NEW_YORK), cron("*/7 1-3 * * *", NEW_YORK), cron("30 2 * * 0", "Europe/Vienna"),
    cron("0 0 L * *"), cron("15 1,2,3 * * *", "Australia/Lord_Howe"), cron("*/20 * * * * *", NEW_YORK),
    ScheduleSpec(every="13m"), ScheduleSpec(calendar=Calendar(("03-08", "11-01"), ("02:30",)), timezone=NEW_YORK),
]  # fmt: skip
MOMENTS = st.integers(ms("2025-10-20T00:00+00:00"), ms("2026-11-20T00:00+00:00"))


@settings(max_examples=60, deadline=None)
@given(spec=st.sampled_from(SPECS), moment=MOMENTS)
def test_times_do_not_depend_on_where_the_search_begins(spec: ScheduleSpec, moment: int) -> None:
    times = times_of(spec)
    found = list(islice(upcoming(times, moment), 20))
    assert all(a < b for a, b in pairwise([moment, *found]))
    for a, b in pairwise(found):
        for between in (a, a + 1, (a + b) // 2, b - 1):
            assert times.after(between) == b


@settings(max_examples=40, deadline=None)
@given(spec=st.sampled_from(SPECS), moment=MOMENTS, more=st.integers(0, 40))
def test_the_latest_time_is_the_last_of_all(spec: ScheduleSpec, moment: int, more: int) -> None:
    times = times_of(spec)
    [first, *rest] = islice(upcoming(times, moment), more + 2)
    for until, expected in ((rest[-1], rest[-1]), (rest[-1] - 1, [first, *rest][-2]), (first - 1, None)):
        assert latest(times, first, until) == expected


def test_nothing_comes_after_the_year_9999() -> None:
    end = int(datetime(9999, 6, 1, tzinfo=UTC).timestamp() * 1000)
    for spec in SPECS:
        assert times_of(spec).after(end) is None
