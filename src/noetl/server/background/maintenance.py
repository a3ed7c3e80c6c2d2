"""Run the maintenance of a store once a day while a server runs.

The store defines the work. Tested in tests/unit/server/background/test_maintenance.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from noetl.model.errors import NoetlError, log_level
from noetl.ports import Clock

_log = logging.getLogger(__name__)
_DAY_S = 24 * 3600.0
_AGAIN_S = 600.0  # pause after a failure


@asynccontextmanager
async def run_maintenance(tend: Callable[[], Awaitable[None]] | None, clock: Clock) -> AsyncIterator[None]:
    """Run `tend` daily while the block is active; opening the store has run it before."""
    if tend is None:
        yield
        return
    task = asyncio.create_task(_every_day(tend, clock), name="noetl-tending")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _every_day(tend: Callable[[], Awaitable[None]], clock: Clock) -> None:
    pause = _DAY_S
    while True:
        await clock.sleep(pause)
        try:
            await tend()
            pause = _DAY_S
        except NoetlError as error:
            _log.log(log_level(error), "Maintenance of the store failed and is tried again later: %s", error)
            pause = _AGAIN_S
