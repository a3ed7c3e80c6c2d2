"""Port of the transactional outbox: messages to other systems.

Messages are delivered at least once. A relay claims a message until a time; the number of the attempt fences a relay
whose claim has expired. Every adapter passes tests/conformance/test_outbox.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from noetl.ports.team import Audit

STATES: Final = ("pending", "delivered", "dead", "discarded")


class OutboxMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Message to another system, and its delivery state."""

    key: str  # unique; sent as `Idempotency-Key`
    topic: str = ""
    target: str = "http"  # kind of target
    address: str = ""  # by default, the relay's address for topics
    payload: Any = None
    headers: Mapping[str, str] = {}
    auth: str = ""  # name of the credential
    execution_id: str = ""
    number: int = 0  # assigned by the store
    state: str = "pending"  # see STATES
    attempts: int = 0  # number of the last attempt
    available_at: int = 0  # not before this time
    created_at: int = 0
    delivered_at: int | None = None
    error: str = ""  # why the last attempt failed, or why it was discarded


class OutboxIn(Protocol):
    """Outbox as a task uses it."""

    async def put(self, message: OutboxMessage, now: int) -> int:
        """Store a message, once per key, and return its number."""


class Outbox(OutboxIn, Protocol):
    """Outbox as a relay and an operator use it."""

    async def claim(self, now: int, until: int, most: int) -> list[OutboxMessage]:
        """Claim due messages until a time, longest waiting first, and count the attempt.

        No other caller gets them before that time. They are returned in the order of their numbers.
        """

    async def delivered(self, number: int, attempt: int, now: int) -> bool:
        """Mark a message as delivered; False if another attempt has it."""

    async def failed(self, number: int, attempt: int, error: str, again_at: int | None) -> bool:
        """Record a failed attempt and the time of the next one.

        `again_at` is None if there is no next attempt. Returns False if another attempt owns the message.
        """

    async def message(self, number: int) -> OutboxMessage | None: ...

    async def messages(self, state: str | None, before: int | None, limit: int) -> list[OutboxMessage]:
        """List messages, newest first; `before` is the last number of the previous page."""

    async def again(self, number: int, now: int, act: Audit = None) -> bool:
        """Retry a pending or dead message now, with all attempts; False if it is neither."""

    async def discard(self, number: int, reason: str, act: Audit = None) -> bool:
        """Discard a pending or dead message; False if it is neither."""

    async def waiting(self) -> Mapping[str, int]:
        """Count pending and dead messages; `next_at` is the first due time, or 0."""

    async def forget(self, before: int) -> int:
        """Delete messages that were delivered or discarded before a time; return how many."""
