"""The outbox: messages for other systems that are written down first and delivered afterwards, at least once.

A message waits until a relay has delivered it. Whoever claims one has it to himself until a time; the number of the attempt
tells whether he still has it. Every port has one conformance suite that all of its adapters pass (tests/conformance).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from noetl.ports.team import Act

STATES: Final = ("pending", "delivered", "dead", "discarded")


class OutboxMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message, and what became of it."""

    key: str  # tells it apart: the same key is put once, and goes out as `Idempotency-Key`
    topic: str = ""
    target: str = "http"  # what delivers it
    address: str = ""  # where to; without one, the relay's address for topics
    payload: Any = None
    headers: Mapping[str, str] = {}
    auth: str = ""  # the credential to use, by name
    execution_id: str = ""
    number: int = 0  # given by the store
    state: str = "pending"  # see STATES
    attempts: int = 0  # the number of the last one
    available_at: int = 0  # not before this time
    created_at: int = 0
    delivered_at: int | None = None
    error: str = ""  # why the last attempt failed, or why it was discarded


class OutboxIn(Protocol):
    """What a task asks of the outbox."""

    async def put(self, message: OutboxMessage, now: int) -> int:
        """Write a message down; gives its number, also where it was put before under the same key."""


class Outbox(OutboxIn, Protocol):
    """What a relay and those who look after it ask of the outbox."""

    async def claim(self, now: int, until: int, most: int) -> list[OutboxMessage]:
        """Give messages whose time has come, those that wait longest; nobody else is given them until a time.

        The attempt is counted. They come in the order of their numbers.
        """

    async def delivered(self, number: int, attempt: int, now: int) -> bool:
        """Say that a message is delivered; False where it is no longer this attempt's."""

    async def failed(self, number: int, attempt: int, error: str, again_at: int | None) -> bool:
        """Say that an attempt failed and when the next one may be, None where there is none; False as above."""

    async def message(self, number: int) -> OutboxMessage | None: ...

    async def messages(self, state: str | None, before: int | None, limit: int) -> list[OutboxMessage]:
        """List messages, the newest first; `before` is the number where the last page ended."""

    async def again(self, number: int, now: int, act: Act = None) -> bool:
        """Let a message that is dead or waits be tried at once, with all of its attempts; False where it is neither."""

    async def discard(self, number: int, reason: str, act: Act = None) -> bool:
        """Give up a message that is dead or waits; False where it is neither."""

    async def waiting(self) -> Mapping[str, int]:
        """Give how many are pending and dead, and as `next_at` when the first pending one may go; 0 where none waits."""

    async def forget(self, before: int) -> int:
        """Remove what was delivered or discarded and is older than a time; gives how many there were."""
