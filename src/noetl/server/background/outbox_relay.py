"""Deliver the messages of the outbox, at least once, by one server each.

A message with a permanent error, or without attempts left, is dead until an operator retries or discards it. The transport
is passed in as `deliver`. Tested in tests/unit/server/background/test_outbox_relay.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from noetl.engine.tasks.retry import Schedule, asked_ms, chance, delay_ms
from noetl.model.errors import NoetlError, log_level
from noetl.model.outcome import Outcome, failed, raised
from noetl.ports import Clock
from noetl.ports.outbox import Outbox, OutboxMessage
from noetl.server.background.dead_letter_topic import DeadLetterTopic

_log = logging.getLogger(__name__)
Deliver = Callable[[OutboxMessage], Awaitable[Outcome]]
_AT_ONCE: Final = 32
_EVERY_S: Final = 1.0
_FORGET_EVERY_S: Final = 3600.0


class OutboxRelay:
    """Deliver outbox messages in this process."""

    def __init__(
        self,
        outbox: Outbox,
        deliver: Deliver,
        clock: Clock,
        schedule: Schedule,
        *,
        timeout_ms: int = 30_000,
        kept_ms: int = 7 * 86_400_000,
        topic: DeadLetterTopic | None = None,
    ) -> None:
        self._outbox = outbox
        self._deliver = deliver
        self._clock = clock
        self._schedule = schedule
        self._kept_ms = kept_ms
        self._topic = topic  # dead letters, which are put in the outbox before every scan
        self._try_s = timeout_ms / 1000  # timeout of one attempt
        self._hold_ms = timeout_ms * 3 // 2 + 1_000  # a claimed message is hidden from other servers for this long
        self.on_attempt: list[Callable[[OutboxMessage, Outcome], None]] = []

    async def run(self) -> None:
        """Deliver until cancelled."""
        rest = 0.0
        while True:
            try:
                await self.drain()
                rest -= _EVERY_S
                if rest <= 0:
                    rest = _FORGET_EVERY_S
                    await self._outbox.forget(self._clock.now() - self._kept_ms)
            except NoetlError as error:
                _log.log(log_level(error), "Outbox messages are delivered later: %s", error)
            except Exception as error:  # noqa: BLE001 - the relay must not end silently
                _log.exception("Delivering outbox messages failed; it is tried again", exc_info=error)
            await self._clock.sleep(_EVERY_S)

    async def drain(self) -> int:
        """Try every due message once, concurrently; return how many were delivered."""
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
            detail = f"delivery took longer than {self._try_s:g} s"
            outcome = failed("timeout", detail, code="OUTBOX_TIMEOUT", retryable=True)
        except Exception as error:  # noqa: BLE001 - `deliver` may come from a plug-in, and must not end the relay
            outcome = raised(error) or failed("unknown", f"the target raised {type(error).__name__}: {error}")
        for callback in self.on_attempt:
            callback(message, outcome)
        now = self._clock.now()
        if outcome.error is None:
            return await self._outbox.delivered(message.number, message.attempts, now)
        why = f"{outcome.error.code}: {outcome.error.message}" if outcome.error.code else outcome.error.message
        again = self._again_at(message, outcome, now)
        await self._outbox.failed(message.number, message.attempts, why[:2_000], again)
        return False

    def _again_at(self, message: OutboxMessage, outcome: Outcome, now: int) -> int | None:
        if outcome.error is None or not outcome.error.retryable or message.attempts >= self._schedule.attempts:
            return None
        delay = delay_ms(self._schedule, message.attempts, chance(message.key, message.attempts))
        return now + max(delay, asked_ms(outcome.error))
