"""Shift the system clock and the boot clock of a Python process as a file says.

`tests/cluster/skew.py` puts this folder on the path of processes that it starts. The file is read again for each reading
of a clock, so tests can set the clock of a running process.
"""

from __future__ import annotations

import os
import time
from typing import Any


def shift(number: int) -> int:
    """Return the shift in nanoseconds: 0 of the system clock, 1 of the boot clock."""
    if "SHIFTED_CLOCKS" not in os.environ:
        return 0  # the loaded process that they are forked from
    with open(os.environ["SHIFTED_CLOCKS"], encoding="ascii") as file:
        return int(file.read().split()[number]) * 1_000_000_000


def install(module: Any) -> None:
    """Replace the readings of the clocks."""
    time_ns, clock_gettime_ns = module.time_ns, module.clock_gettime_ns
    module.time_ns = lambda: time_ns() + shift(0)
    module.time = lambda: module.time_ns() / 1e9
    shifts = {module.CLOCK_REALTIME: 0, module.CLOCK_BOOTTIME: 1}
    module.clock_gettime_ns = lambda clock: clock_gettime_ns(clock) + (shift(shifts[clock]) if clock in shifts else 0)
    module.clock_gettime = lambda clock: module.clock_gettime_ns(clock) / 1e9


install(time)
