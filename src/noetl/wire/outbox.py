"""Bodies about the outbox. Tested in tests/server/api/test_outbox.py."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Count, Limit, Name, Text
from noetl.wire.session import Held


class OutboxPut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Put a message, authorised by a lease: POST `/api/worker/outbox`."""

    work: Held
    key: Name
    worker: str = ""
    topic: Text = ""
    target: Annotated[str, Meta(min_length=1, max_length=100)] = "http"
    address: Text = ""
    payload: Any = None
    headers: dict[str, Text] = {}
    auth: Text = ""
    available_at: Count = 0


class OutboxNumber(Answer, frozen=True):
    """The number of a message in the outbox."""

    number: int


class OutboxQuery(Asked, frozen=True):
    """Filter of a list of messages."""

    state: Literal["pending", "delivered", "dead", "discarded"] | None = None
    before: Count | None = None  # the last number of the previous page
    limit: Limit = 50


class OutboxDiscard(Asked, frozen=True):
    """Discard a message."""

    reason: Annotated[str, Meta(min_length=1, max_length=500)]


class OutboxRow(Answer, frozen=True):
    """A message; lists omit `payload` and `headers`."""

    number: int
    key: str
    topic: str
    target: str
    address: str
    state: str
    attempts: int
    available_at: int
    created_at: int
    delivered_at: int | None = None
    error: str = ""
    execution_id: str = ""
    auth: str = ""
    payload: Any = None
    headers: dict[str, str] | None = None


class OutboxRows(Answer, frozen=True):
    """A page of messages, the newest first, and the total number by state."""

    messages: list[OutboxRow]
    pending: int
    dead: int
