"""Times of a schedule: the first after any moment, and the last one up to it.

    times = times_of(ScheduleSpec(cron="30 2 * * *", timezone="Europe/Vienna"))
    times.after(moment)          # milliseconds since the epoch, or None: it never fires again

Reads no clock. At a change of the clocks, a cron expression with a fixed hour behaves as in Debian's cron: a skipped time
fires as soon as the clocks are changed, a repeated one fires once; an expression with `*` in its minutes or hours follows the
elapsed time. A calendar does the same. An interval counts elapsed time from the epoch and has no time zone. Tested in
tests/unit/schedules/test_times.py.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cache
from typing import Final, Protocol
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from noetl.schedules.spec import Calendar, Problem, ScheduleSpec, check, duration_ms

MACROS: Final[Mapping[str, str]] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_MOST_CRON: Final = 200  # characters
_MOST_DAYS: Final = 1_000
_MOST_CLOCKS: Final = 100
_FIRST_WINDOW_MS: Final = 120_000
_HORIZON_YEARS: Final = 50  # beyond it nothing is searched, as in the cron library
_END_MS: Final = 253_370_764_800_000  # 9999-01-01: later moments have no date
_FIELDS_FIX: Final = "Write five fields: minute, hour, day of month, month, day of week; or six, with seconds first."
_DATE: Final = re.compile(r"(?:(\d{4})-)?(\d{2})-(\d{2})")
_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")


class Times(Protocol):
    """The times at which a schedule fires, in milliseconds since the epoch."""

    def after(self, moment: int) -> int | None:
        """Return the first time after a moment, or None."""


def times_of(spec: ScheduleSpec) -> Times:
    """Return the times of a checked schedule. Raises Problem."""
    found = _unbounded(spec)
    return found if spec.until is None else _Until(found, spec.until)


def _unbounded(spec: ScheduleSpec) -> Times:
    check(spec)
    zone = zone_of(spec.timezone)
    if spec.every is not None:
        return _Interval(duration_ms(spec.every))
    if spec.calendar is not None:
        return _CalendarTimes(spec.calendar, zone)
    return _Cron(str(spec.cron), zone)


class _Until:
    """The times of another before a moment."""

    def __init__(self, times: Times, until: int) -> None:
        self._times = times
        self._until = until

    def after(self, moment: int) -> int | None:
        found = self._times.after(moment)
        return found if found is not None and found < self._until else None


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its IANA name. Raises Problem."""
    if name == "UTC":
        return UTC
    if name not in _zones():
        near = next((one for one in sorted(_zones()) if one.lower() == name.lower()), None)
        fix = f"Did you mean `{near}`?" if near else "Write an IANA name such as `Europe/Vienna`, or `UTC`."
        raise Problem("timezone", f"{name!r} is no time zone.", fix)
    return ZoneInfo(name)


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())  # reads many files


def latest(times: Times, first: int, until: int) -> int | None:
    """Return the last time in [first, until]; `first` is a time itself, or earlier."""
    window = _FIRST_WINDOW_MS
    while True:
        start = max(first, until - window)
        found = times.after(start - 1)
        if found is not None and found <= until:
            while (following := times.after(found)) is not None and following <= until:
                found = following
            return found
        if start == first:
            return None
        window *= 2


class _Interval:
    """Multiples of a duration since the epoch."""

    def __init__(self, every_ms: int) -> None:
        self._every_ms = every_ms

    def after(self, moment: int) -> int | None:
        found = (moment // self._every_ms + 1) * self._every_ms
        return found if found < _END_MS else None


class _Cron:
    """The times of a cron expression."""

    def __init__(self, expression: str, zone: tzinfo) -> None:
        self._zone = zone
        self._expression = MACROS.get(expression.strip().lower(), expression)
        if len(expression) > _MOST_CRON:
            raise Problem("cron", f"The expression is longer than {_MOST_CRON} characters.", "Split it.")
        try:
            first = CronSim(self._expression, datetime(2000, 1, 1, tzinfo=zone))
            next(first)
        except CronSimError as error:
            raise Problem("cron", f"{expression!r} is no cron expression: {str(error).lower()}.", _FIELDS_FIX) from None
        except AssertionError:
            raise Problem("cron", f"{expression!r} is no cron expression.", _FIELDS_FIX) from None
        except StopIteration:
            raise Problem("cron", f"{expression!r} names a day that never comes.", "Write a day that exists.") from None

    def after(self, moment: int) -> int | None:
        if moment >= _END_MS:
            return None
        try:
            for found in CronSim(self._expression, _at(moment, self._zone)):
                if (at := _ms(found)) > moment:  # a repeated hour begins with times that have passed
                    return at
        except (OverflowError, ValueError):
            return None  # after the year 9999
        return None


class _CalendarTimes:
    """Times of day on listed days."""

    def __init__(self, calendar: Calendar, zone: tzinfo) -> None:
        self._zone = zone
        if not 0 < len(calendar.dates) <= _MOST_DAYS:
            raise Problem("calendar.dates", "The list has no day, or too many.", f"List 1 to {_MOST_DAYS} days.")
        if not 0 < len(calendar.at) <= _MOST_CLOCKS:
            raise Problem("calendar.at", "The list has no time, or too many.", f"List 1 to {_MOST_CLOCKS} times.")
        days = [_day(text) for text in calendar.dates]
        self._dates = {day for year, day in days if year}
        self._yearly = {(day.month, day.day) for year, day in days if not year}
        self._last_year = max((day.year for day in self._dates), default=0)
        self._clocks = sorted({_clock(text) for text in calendar.at})

    def after(self, moment: int) -> int | None:
        if moment >= _END_MS:
            return None
        today = _at(moment, self._zone).date()
        years = range(today.year, today.year + _HORIZON_YEARS)
        for year in years:
            if not self._yearly and year > self._last_year:
                return None
            times = sorted({at for day in self._days(year) for at in self._times(day)})
            index = bisect_right(times, moment)
            if index < len(times):
                return times[index]
        return None

    def _days(self, year: int) -> Iterator[date]:
        for day in self._dates:
            if day.year == year:
                yield day
        for month, number in self._yearly:
            if (month, number) != (2, 29) or (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)):
                yield date(year, month, number)

    def _times(self, day: date) -> Iterator[int]:
        for clock in self._clocks:
            found = datetime.combine(day, clock, self._zone)
            while _is_skipped(found):  # the clocks are set forward over it: when they are
                found = (found.replace(tzinfo=None) + timedelta(minutes=1)).replace(tzinfo=self._zone, second=0)
            yield _ms(found)


def _day(text: str) -> tuple[int, date]:
    """Return the year, 0 for every year, and the day. Raises Problem."""
    found = _DATE.fullmatch(text)
    try:
        if found is not None:
            year = int(found[1] or 0)
            return year, date(year or 2000, int(found[2]), int(found[3]))
    except ValueError:
        pass
    raise Problem("calendar.dates", f"{text!r} is no day.", "Write 2026-12-24, or 12-24 for every year.")


def _clock(text: str) -> time:
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise Problem("calendar.at", f"{text!r} is no time of day.", "Write 08:00 or 08:00:30.")
    return time(int(found[1]), int(found[2]), int(found[3] or 0))


def _is_skipped(moment: datetime) -> bool:
    return moment.astimezone(UTC).astimezone(moment.tzinfo).replace(tzinfo=None) != moment.replace(tzinfo=None)


def _at(moment: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(moment // 1000, zone)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000
