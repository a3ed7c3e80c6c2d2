"""Fire due timers as messages, and wake claims for delayed work.

The row of a timer stays until the commit that applies it, so a crash loses no timer. Tested in
tests/unit/server/background/test_timers.py.
"""

from __future__ import annotations

import asyncio
import logging

from noetl.model.errors import NoetlError, log_level
from noetl.model.messages import TimerDue
from noetl.ports import CivilClock, WorkQueue
from noetl.server.sequencer.sequencer import Sequencer

_log = logging.getLogger(__name__)
_MOST_AT_ONCE = 1_000
_LONGEST_S = 1.0  # between two reads; other servers set timers too
_AFTER_ERROR_S = 0.5
_FAR = 2**62


class Timers:
    """Fire the timers of a store."""

    def __init__(self, queue: WorkQueue, sequencer: Sequencer, clock: CivilClock) -> None:
        self._queue = queue
        self._sequencer = sequencer
        self._clock = clock
        self._earlier = asyncio.Event()
        self._next = _FAR
        sequencer.hooks.register(time=self.notice)

    def notice(self, at: int) -> None:
        """Wake up no later than this time."""
        if at < self._next:
            self._earlier.set()

    async def fire(self) -> int:
        """Submit due timers and wait until they are committed; return their number."""
        due = await self._queue.due(self._clock.now(), _MOST_AT_ONCE, self._clock.civil())
        # The time is part of the id: a timer that is set again is a new one. So is the execution: stores look for a
        # message by a part of its id, which many executions would share.
        messages = [
            (execution_id, TimerDue(f"timer:{execution_id}:{name}:{at}", name), None) for execution_id, name, at in due
        ]
        answers = await self._sequencer.submit_all(messages)
        for (execution_id, message, _), answer in zip(messages, answers, strict=True):
            if isinstance(answer, Exception):  # it stays due and is tried again
                _log.warning("Timer %s of execution %s failed: %s", message.timer_id, execution_id, answer)
        return sum(not isinstance(answer, Exception) for answer in answers)

    async def run(self) -> None:
        """Fire timers until cancelled."""
        while True:
            try:
                pause = await self._round()
            except NoetlError as error:
                _log.log(log_level(error), "Timers are fired later: %s", error)
                pause = _AFTER_ERROR_S
            await self._pause(pause)

    async def _round(self) -> float:
        self._earlier.clear()
        self._next = _FAR
        fired = await self.fire()
        self._sequencer.look()  # delayed work may be available now
        now = self._clock.now()
        at = await self._queue.next_time(now)
        self._next = min(now + round(_LONGEST_S * 1000), _FAR if at is None else at)
        return 0.0 if fired == _MOST_AT_ONCE else (self._next - now) / 1000

    async def _pause(self, seconds: float) -> None:
        if seconds <= 0:
            return
        sleep = asyncio.ensure_future(self._clock.sleep(seconds))
        woken = asyncio.ensure_future(self._earlier.wait())
        try:
            await asyncio.wait({sleep, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            woken.cancel()
