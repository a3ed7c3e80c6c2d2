"""Bodies about subscriptions. Tested in tests/server/api/triggers."""

from __future__ import annotations

from typing import Any

from msgspec import field

from noetl.triggers.subscription import After, Begin, Format, Kind
from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Count, Name, Version
from noetl.wire.triggers.fields import Long, Short, TriggerName


class SubscriptionAsked(Asked, frozen=True):
    """Create a subscription: a playbook, and the source of its messages."""

    name: TriggerName
    path: Name
    source: Kind
    version: Version | None = None  # default: the latest at each message
    auth: Short = ""  # name of a credential
    channel: Short = ""
    table: Short = ""
    key: Short = ""
    begin: Begin = "now"
    folder: Long = ""
    pattern: Short = "*"
    after: After = "keep"
    format: Format = "json"
    url: Long = ""
    params: dict[str, Any] = field(default_factory=dict)
    items: Long = "{{ body }}"
    id: Long = ""
    cursor: Long = ""
    every: Short | Count = "10s"
    payload: dict[str, Any] = field(default_factory=dict)
    paused: bool = False


class SubscriptionRow(Answer, frozen=True):
    """A subscription, and how far it got.

    `owner` is the playbook whose `triggers` define it, if one does; `error` says why its source cannot be read.
    """

    subscription_id: str
    path: str
    source: str
    reads: str  # where messages come from, in words
    paused: bool
    version: int | None = None
    owner: str = ""
    spec: dict[str, Any] = field(default_factory=dict)  # fields as they were given
    position: dict[str, Any] = field(default_factory=dict)  # of a table: the last key, as `after`
    received: int = 0  # messages that started executions
    poisoned: int = 0  # messages that became dead letters
    last_message: str = ""
    last_at: int = 0
    lag: int = 0  # messages that waited after the last poll
    polled_at: int | None = None
    error: str = ""
    failures: int = 0
    next_at: int | None = None  # when a source that failed is tried again
    created_at: int = 0
    created_by: str = ""
    changed_at: int = 0


class SubscriptionRows(Answer, frozen=True):
    """A page of subscriptions by id; `next` is the cursor of the next page."""

    subscriptions: list[SubscriptionRow]
    next: str | None = None


class MessagePreview(Answer, frozen=True):
    """A message that the next poll would take in, or why it would be a dead letter."""

    message_id: str
    payload: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


class SubscriptionTested(Answer, frozen=True):
    """What the source offers now; nothing was taken in."""

    ok: bool
    messages: list[MessagePreview] = field(default_factory=list)
    lag: int = 0
    error: str = ""
