"""The relay: delivers the messages of the outbox, at least once, each by one of the servers that share a store.

A message that is refused for good, or was tried as often as the settings allow, is dead: it waits for a person. How a
message reaches its target is somebody else's business. Tested in tests/unit/server/test_relay.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from noetl.engine.retry import Schedule, asked_ms, chance, delay_ms
from noetl.model.errors import NoetlError
from noetl.model.outcome import Outcome, failed, raised
from noetl.ports import Clock
from noetl.ports.outbox import Outbox, OutboxMessage
from noetl.server.letter_topic import LetterTopic

_log = logging.getLogger(__name__)
Deliver = Callable[[OutboxMessage], Awaitable[Outcome]]
_AT_ONCE: Final = 32
_EVERY_S: Final = 1.0
_FORGET_EVERY_S: Final = 3600.0


class Relay:
    """Delivers for one process."""

    def __init__(
        self,
        outbox: Outbox,
        deliver: Deliver,
        clock: Clock,
        schedule: Schedule,
        *,
        timeout_ms: int = 30_000,
        kept_ms: int = 7 * 86_400_000,
        topic: LetterTopic | None = None,
    ) -> None:
        self._outbox = outbox
        self._deliver = deliver
        self._clock = clock
        self._schedule = schedule
        self._kept_ms = kept_ms
        self._topic = topic  # of dead letters, which are put in the outbox before it is looked into
        self._try_s = timeout_ms / 1000  # how long one attempt may take
        self._hold_ms = timeout_ms * 3 // 2 + 1_000  # how long a message is kept from other servers
        self.on_attempt: list[Callable[[OutboxMessage, Outcome], None]] = []

    async def run(self) -> None:
        """Work until cancelled."""
        rest = 0.0
        while True:
            try:
                await self.drain()
                rest -= _EVERY_S
                if rest <= 0:
                    rest = _FORGET_EVERY_S
                    await self._outbox.forget(self._clock.now() - self._kept_ms)
            except NoetlError as error:
                _log.warning("the outbox waits for the store: %s", error)
            except Exception as error:  # noqa: BLE001 - a relay that ended would be missed by nobody
                _log.exception("the outbox is tried again", exc_info=error)
            await self._clock.sleep(_EVERY_S)

    async def drain(self) -> int:
        """Try everything that is due once; gives how many were delivered. One that takes long holds up no other."""
        if self._topic is not None:
            await self._topic.publish()
        done = 0
        broken: BaseException | None = None
        under_way: set[asyncio.Task[bool]] = set()
        try:
            while True:
                room = _AT_ONCE - len(under_way) if broken is None else 0
                now = self._clock.now()
                due = await self._outbox.claim(now, now + self._hold_ms, room) if room else []
                under_way |= {asyncio.create_task(self._try(message)) for message in due}
                if not under_way:
                    break
                ended, under_way = await asyncio.wait(under_way, timeout=_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
                broken = next((one.exception() for one in ended if one.exception() is not None), broken)
                done += sum(one.exception() is None and one.result() for one in ended)
        finally:
            for one in under_way:
                one.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
        if broken is not None:
            raise broken
        return done

    async def _try(self, message: OutboxMessage) -> bool:
        try:
            async with asyncio.timeout(self._try_s):
                outcome = await self._deliver(message)
        except TimeoutError:
            outcome = failed("timeout", f"it took longer than {self._try_s:g} s", code="OUTBOX_TIMEOUT", retryable=True)
        except Exception as error:  # noqa: BLE001 - what delivers may come from a package, and must not end the relay
            outcome = raised(error) or failed("unknown", f"the target raised {type(error).__name__}: {error}")
        for told in self.on_attempt:
            told(message, outcome)
        now = self._clock.now()
        if outcome.error is None:
            return await self._outbox.delivered(message.number, message.attempts, now)
        why = f"{outcome.error.code}: {outcome.error.message}" if outcome.error.code else outcome.error.message
        again = self._again_at(message, outcome, now)
        await self._outbox.failed(message.number, message.attempts, why[:2_000], again)
        return False

    def _again_at(self, message: OutboxMessage, outcome: Outcome, now: int) -> int | None:
        """Give when to try again; None where that makes no sense, or was done often enough."""
        if outcome.error is None or not outcome.error.retryable or message.attempts >= self._schedule.attempts:
            return None
        delay = delay_ms(self._schedule, message.attempts, chance(message.key, message.attempts))
        return now + max(delay, asked_ms(outcome.error))
