"""Turns times that have come into messages: due timers, and delayed work that can be claimed.

A timer's row stays until the commit that applies it, so no time is lost with a process. Tested in
tests/unit/server/test_timers.py.
"""

from __future__ import annotations

import asyncio
import logging

from noetl.model.errors import NoetlError
from noetl.model.messages import TimerDue
from noetl.ports import Clock, WorkQueue
from noetl.server.sequencer import Sequencer

_log = logging.getLogger(__name__)
_MOST_AT_ONCE = 1_000
_LONGEST_S = 1.0  # between two looks; others may have set timers that nobody told us of
_AFTER_TROUBLE_S = 0.5
_FAR = 2**62


class Timers:
    """Watches the clock for a sequencer."""

    def __init__(self, queue: WorkQueue, sequencer: Sequencer, clock: Clock) -> None:
        self._queue = queue
        self._sequencer = sequencer
        self._clock = clock
        self._earlier = asyncio.Event()
        self._next = _FAR
        sequencer.listeners.on_time.append(self.notice)

    def notice(self, at: int) -> None:
        """Wake up in time for something new."""
        if at < self._next:
            self._earlier.set()

    async def fire(self) -> int:
        """Send what is due now and wait until it is decided; gives how many."""
        due = await self._queue.due(self._clock.now(), _MOST_AT_ONCE)
        # The time is in the id: a timer that is set again is another one.
        messages = [(found, TimerDue(f"timer:{name}:{at}", name)) for found, name, at in due]
        done = await asyncio.gather(
            *(self._sequencer.submit(found, message) for found, message in messages), return_exceptions=True
        )
        for (found, message), answer in zip(messages, done, strict=True):
            if isinstance(answer, BaseException):  # it stays due, and is tried again with the next look
                _log.warning("timer %s of execution %s: %s", message.timer_id, found, answer)
        return sum(not isinstance(answer, BaseException) for answer in done)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            try:
                pause = await self._round()
            except NoetlError as error:
                _log.warning("timers wait for the store: %s", error)
                pause = _AFTER_TROUBLE_S
            await self._pause(pause)

    async def _round(self) -> float:
        self._earlier.clear()
        self._next = _FAR
        fired = await self.fire()
        self._sequencer.look()  # delayed work may have come of age
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
