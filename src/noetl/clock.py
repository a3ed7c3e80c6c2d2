"""The clock of a process: the time since boot plus an offset.

    clock.now()                     # milliseconds since the epoch, for leases, timers, time-outs and timestamps
    clock.civil()                   # the same as the system clock says now, for points of civil time

The time since boot counts suspends and ignores changes of the system clock, so durations stay what they are. The offset
comes from an authority that all processes of a store share: the database's clock on PostgreSQL, a row of the file on
SQLite, the server's clock in a remote worker. Tested in tests/unit/test_clock.py and tests/cluster/test_clocks.py.
"""

from __future__ import annotations

import logging
import time
from typing import Final

STEP_MS: Final = 1_000  # a smaller change of the system clock is no step
_SKEW_MS: Final = 5_000  # from here on the difference to the system clock is reported
_BOOT_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_log = logging.getLogger(__name__)


def _correction() -> int:
    """Return what the boot clock of this process lacks, if another one is simulated."""
    try:
        with open("/proc/uptime", encoding="ascii") as file:
            lack = round(float(file.read().split()[0]) * 1000) - time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000
    except (OSError, ValueError, IndexError):
        return 0
    return lack if abs(lack) > STEP_MS else 0


_CORRECTION: Final = _correction()


def uptime() -> int:
    """Return the milliseconds since boot, suspends included."""
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000 + _CORRECTION


def system_offset() -> int:
    """Return what the system clock adds to the time since boot now."""
    return time.time_ns() // 1_000_000 - uptime()


class SteadyClock:
    """Clock that no change of the system clock moves; an authority may correct it."""

    def __init__(self, authority: str = "") -> None:
        self._authority = authority  # what it follows, for messages; empty: this machine alone
        self._offset = system_offset()
        self._follows = False
        self._is_skewed = False

    def now(self) -> int:
        """Return the time in milliseconds since the epoch."""
        boot = time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000  # as `uptime`: the call would be half of the cost
        return boot + _CORRECTION + self._offset

    def civil(self) -> int:
        """Return the time of day: the authority's, else that of the system clock."""
        return self.now() if self._authority else time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Sleep at least this long."""
        import asyncio  # checking a playbook must not load an event loop

        await asyncio.sleep(seconds)

    @property
    def offset(self) -> int:
        """What is added to the time since boot."""
        return self._offset

    @property
    def skew(self) -> int:
        """How many milliseconds the system clock is ahead of this one."""
        return system_offset() - self._offset

    def set_offset(self, offset: int) -> None:
        """Set what is added to the time since boot."""
        self._offset = offset

    def follow(self, asked: int, time: int) -> None:
        """Take the authority's time, which was read between the uptime `asked` and now.

        The round trip bounds the error; an offset within the bounds stays.
        """
        low, high = time - uptime(), time + 1 - asked
        self._offset = min(max(self._offset, low), high) if self._follows else (low + high) // 2
        self._follows = True
        self.watch()

    def watch(self) -> None:
        """Log when the system clock begins or ceases to differ."""
        skew = self.skew
        if (abs(skew) > _SKEW_MS) is self._is_skewed:
            return
        self._is_skewed = not self._is_skewed
        if self._is_skewed:
            _log.warning(
                "%s Leases, timers and time-outs are not affected. Synchronize it, for example with NTP.", self
            )
        else:
            _log.info("The system clock is right again.")

    def __str__(self) -> str:
        skew = self.skew
        direction = "ahead of" if skew > 0 else "behind"
        other = self._authority or "the time that open executions began with"
        return f"The system clock is {abs(skew) / 1000:.1f} s {direction} {other}."

    @property
    def report(self) -> str:
        """`ok`, or what is wrong with the system clock."""
        return str(self) if abs(self.skew) > _SKEW_MS else "ok"
