"""Schedules as they are written: durations, and mistakes with their fix."""

from __future__ import annotations

import pytest

from noetl.schedules.spec import Calendar, Problem, ScheduleSpec, duration_ms
from noetl.schedules.times import times_of


@pytest.mark.parametrize(
    ("given", "expected"), [(90, 90_000), ("90", 90_000), ("15m", 900_000), ("2 h", 7_200_000), ("1W", 604_800_000)]
)
def test_a_duration_is_seconds_or_has_a_unit(given: str | int, expected: int) -> None:
    assert duration_ms(given) == expected


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        (ScheduleSpec(), "cron", "has no time"),
        (ScheduleSpec(cron="* * * * *", every=5), "every", "`cron` and `every` exclude each other"),
        (ScheduleSpec(every="soon"), "every", "'soon' is no duration"),
        (ScheduleSpec(every=0), "every", "0 is out of range"),
        (ScheduleSpec(every="9999999d"), "every", "out of range"),
        (ScheduleSpec(every=True), "every", "True is no duration"),
        (ScheduleSpec(every=60, jitter="25h"), "jitter", "'25h' is out of range"),
        (ScheduleSpec(every=60, time_as="a b"), "time_as", "'a b' is no name"),
        (ScheduleSpec(cron="61 * * * *"), "cron", "bad minute"),
        (ScheduleSpec(cron="* * *"), "cron", "wrong number of fields"),
        (ScheduleSpec(cron="0 0 30 2 *"), "cron", "bad day-of-month"),
        (ScheduleSpec(cron="* * */20 * 1L"), "cron", "never comes"),
        (ScheduleSpec(cron="* * * * " + "1," * 200 + "1"), "cron", "longer than 200"),
        (ScheduleSpec(cron="@daily", timezone="europe/vienna"), "timezone", "Did you mean `Europe/Vienna`"),
        (ScheduleSpec(cron="@daily", timezone="Mars/North"), "timezone", "IANA name"),
        (ScheduleSpec(cron="@daily", timezone="../etc/passwd"), "timezone", "no time zone"),
        (ScheduleSpec(calendar=Calendar(())), "calendar.dates", "no day"),
        (ScheduleSpec(calendar=Calendar(("12-24",), ())), "calendar.at", "no time"),
        (ScheduleSpec(calendar=Calendar(("2026-02-30",))), "calendar.dates", "'2026-02-30' is no day"),
        (ScheduleSpec(calendar=Calendar(("24.12.",))), "calendar.dates", "Write 2026-12-24"),
        (ScheduleSpec(calendar=Calendar(("12-24",), ("25:00",))), "calendar.at", "'25:00' is no time of day"),
    ],
)
def test_a_mistake_names_its_field_and_the_fix(spec: ScheduleSpec, field: str, text: str) -> None:
    with pytest.raises(Problem) as caught:
        times_of(spec)
    assert caught.value.field == field
    assert text in str(caught.value)
    assert caught.value.fix
