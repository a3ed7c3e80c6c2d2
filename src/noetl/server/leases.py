"""Takes leases back that ran out: the work is queued again, and a message tells its execution.

Tested in tests/unit/server/test_leases.py.
"""

from __future__ import annotations

import logging

from noetl.model.errors import NoetlError
from noetl.ports import Clock, WorkQueue
from noetl.server.sequencer import Sequencer

_log = logging.getLogger(__name__)


class Leases:
    """Watches the leases for a sequencer."""

    def __init__(
        self, queue: WorkQueue, sequencer: Sequencer, clock: Clock, *, max_attempts: int = 6, every_s: float = 1.0
    ) -> None:
        self._queue = queue
        self._sequencer = sequencer
        self._clock = clock
        self._max_attempts = max_attempts
        self._every_s = every_s

    async def expire(self) -> int:
        """Take back what has run out by now, and what was handed to nobody; gives how many leases had run out."""
        await self._sequencer.handed.settle()
        found = await self._queue.expired(self._clock.now(), self._max_attempts)
        if found:
            await self._sequencer.gather()
            self._sequencer.look()
        return len(found)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            try:
                await self.expire()
            except NoetlError as error:
                _log.warning("leases wait for the store: %s", error)
            await self._clock.sleep(self._every_s)
