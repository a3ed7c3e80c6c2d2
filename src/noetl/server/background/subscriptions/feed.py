"""One subscription on a server: its source, its duty, and when it is polled next.

Tested in tests/conformance/test_subscription_poller.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from noetl.ports.triggers import Page, Progress, Source, StoredTrigger, Subscriptions
from noetl.triggers.stored import read_spec
from noetl.triggers.subscription import SubscriptionSpec, state_id

KIND: Final = "subscription"
_DUTY_MS: Final = 30_000
_RENEW_MS: Final = 10_000
_MOST_WAIT_MS: Final = 300_000  # between tries of a source that cannot be read
_STATUS_MS: Final = 10_000  # how often an unchanged status is written: `show` prints when the last poll was
_KEPT_MS: Final = 30 * 86_400_000  # how long a message is remembered that the source offers no more
_TIDY_MS: Final = 3_600_000
OpenSource = Callable[[SubscriptionSpec], Awaitable[Source]]  # raises SourceUnavailable


class Duties(Protocol):
    """Duties that one of several servers has."""

    async def on_duty(self, name: str, holder: str, now: int, until: int) -> bool: ...


class Feed:
    """One subscription on this server: its source, and when it is polled next."""

    def __init__(self, trigger: StoredTrigger) -> None:
        self.trigger = trigger
        self.spec = read_spec(trigger.spec, SubscriptionSpec)  # raises InvalidInput
        self.state_id = state_id(trigger.trigger_id, trigger.created_at, self.spec)
        self.source: Source | None = None
        self.task: asyncio.Task[None] | None = None
        self._next_at = 0
        self._duty_until = 0
        self._failures = 0
        self._status: dict[str, Any] = {}
        self._noted_at = -_STATUS_MS
        self._tidy_at = 0

    async def is_due(self, now: int) -> bool:
        """Return whether it is to be polled; a source that cannot be read waits."""
        if now >= self._next_at:
            return True
        return not self._failures and self.source is not None and await self.source.is_woken()

    async def is_on_duty(self, duties: Duties, holder: str, now: int) -> bool:
        """Return whether this server polls it. Renews the lease only when it must."""
        if now < self._duty_until - _DUTY_MS + _RENEW_MS:
            return True
        until = now + _DUTY_MS
        held = await duties.on_duty(f"{KIND}:{self.trigger.trigger_id}", holder, now, until)
        self._duty_until = until if held else 0
        return held

    def polled(self, page: Page, now: int) -> None:
        """Note a poll, and when the next one is."""
        self._failures, self._next_at = 0, now if page.more else now + self.spec.every_ms
        self._status = {"lag": page.lag, "polled_at": now}

    def failed(self, why: str, now: int) -> None:
        """Note why it could not be polled, and wait longer each time."""
        self._failures += 1
        wait = min(1_000 * 2 ** min(self._failures, 12), _MOST_WAIT_MS)
        self._next_at = now + wait
        known = {name: value for name, value in self._status.items() if name in ("lag", "polled_at")}
        self._status = {
            **known,
            "error": why[:2_000],
            "failed_at": now,
            "failures": self._failures,
            "next_at": now + wait,
        }

    async def note(self, subscriptions: Subscriptions, before: Progress, now: int) -> None:
        """Write the status if it has changed, or was written long ago."""
        moving = ("polled_at", "failed_at", "next_at")
        was, is_now = ({k: v for k, v in one.items() if k not in moving} for one in (before.status, self._status))
        if was != is_now or now - self._noted_at >= _STATUS_MS:
            await subscriptions.note(self.state_id, self._status)
            self._noted_at = now

    async def tidy(self, subscriptions: Subscriptions, now: int) -> None:
        """Forget messages that the source has not offered for long, now and then."""
        if now >= self._tidy_at and self.source is not None and not self.source.is_ordered:
            self._tidy_at = now + _TIDY_MS
            await subscriptions.forget(self.state_id, now - _KEPT_MS)

    async def open(self, opened: OpenSource) -> Source:
        """Return the source, opened if it is not."""
        if self.source is None:
            self.source = await opened(self.spec)
        return self.source

    async def close(self) -> None:
        """Close the source; the next poll opens it again."""
        source, self.source = self.source, None
        if source is not None:
            await source.close()

    async def stop(self) -> None:
        """End what runs, and close the source."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
        await self.close()

    def renew(self, trigger: StoredTrigger) -> None:
        """Take a changed trigger with the same source and templates."""
        self.trigger = trigger

    def begin(self, poll: Callable[[Feed], Awaitable[None]]) -> None:
        """Poll in a task, unless one runs."""
        if self.task is None or self.task.done():
            self.task = asyncio.ensure_future(poll(self))
