"""A schedule as it is written: in a playbook, in a request or in the store.

    cron: "30 2 * * *"          # or every: 15m, or calendar: {dates: [2026-12-24], at: ["08:00"]}
    timezone: Europe/Vienna
    overlap: skip

Reads no clock. Tested in tests/unit/schedules/test_spec.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from noetl.model.errors import InvalidInput

CatchUp = Literal["skip", "last", "all"]
Overlap = Literal["allow", "skip", "queue", "cancel_running"]
KINDS: Final = ("cron", "every", "calendar")
CATCH_UPS: Final[tuple[str, ...]] = get_args(CatchUp)
OVERLAPS: Final[tuple[str, ...]] = get_args(Overlap)
NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
MOST_JITTER_MS: Final = 86_400_000
_LEAST_MS: Final = 1_000
_MOST_MS: Final = 3_660 * 86_400_000
_UNIT_MS: Final[Mapping[str, int]] = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION: Final = re.compile(r"(\d{1,9})\s*([smhdw]?)")


class Calendar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Days, each a date or a day of every year as `12-24`, and times of day."""

    dates: tuple[str, ...]
    at: tuple[str, ...] = ("00:00",)


class ScheduleSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When a schedule fires, and what it does about late and overlapping firings."""

    cron: str | None = None
    every: str | int | None = None  # seconds, or a text such as 15m
    calendar: Calendar | None = None
    timezone: str = "UTC"
    jitter: str | int = 0  # delays each start by a fixed part of this time
    catch_up: CatchUp = "skip"
    overlap: Overlap = "skip"
    payload: Mapping[str, Any] = {}
    time_as: str = ""  # name in the payload under which an execution gets the time of its firing
    until: int | None = None  # of a backfill: its times are before this one
    at_once: int = 0  # of a backfill: how many of its executions run at once; 0: it is none

    @property
    def jitter_ms(self) -> int:
        """Largest delay of a start, in milliseconds."""
        return duration_ms(self.jitter)


class Problem(InvalidInput):
    """A field of a trigger that cannot be used, and what to write instead."""

    def __init__(self, field: str, what: str, fix: str) -> None:
        super().__init__(f"`{field}`: {what} {fix}")
        self.field = field
        self.what = what
        self.fix = fix


def duration_ms(given: str | int) -> int:
    """Return a duration in milliseconds; a number is seconds. Raises ValueError."""
    if isinstance(given, bool):
        raise ValueError(given)
    found = _DURATION.fullmatch(str(given).strip().lower())
    if found is None:
        raise ValueError(given)
    return int(found[1]) * _UNIT_MS[found[2] or "s"]


def check(spec: ScheduleSpec) -> None:
    """Check a schedule without its times. Raises Problem with the first mistake."""
    given = [kind for kind in KINDS if getattr(spec, kind) is not None]
    if len(given) != 1:
        what = f"`{'` and `'.join(given)}` exclude each other." if given else "A schedule has no time."
        raise Problem(given[1] if given else "cron", what, "Write one of `cron`, `every` and `calendar`.")
    if spec.every is not None:
        _bounded("every", spec.every, _LEAST_MS, _MOST_MS, "Write seconds, or a text such as 15m, from 1s to 3660d.")
    _bounded("jitter", spec.jitter, 0, MOST_JITTER_MS, "Write seconds, or a text such as 30s, up to 24h.")
    if spec.time_as and not spec.time_as.isidentifier():
        raise Problem("time_as", f"{spec.time_as!r} is no name.", "Write a name such as `scheduled_for`.")


def _bounded(field: str, given: str | int, least: int, most: int, fix: str) -> None:
    try:
        found = duration_ms(given)
    except ValueError:
        raise Problem(field, f"{given!r} is no duration.", fix) from None
    if not least <= found <= most:
        raise Problem(field, f"{given!r} is out of range.", fix)
