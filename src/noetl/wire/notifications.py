"""Bodies about notifications. Tested in tests/server/api/test_notifications.py."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from noetl.schedules.spec import NAME
from noetl.triggers.notification import Channel, On
from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Count, Limit, Name

NotificationName = Annotated[str, Meta(pattern=f"^{NAME}$")]
Receiver = Annotated[str, Meta(max_length=200)]


class NotificationAsked(Asked, frozen=True):
    """Create a notification: a pattern of paths, events and a channel."""

    name: NotificationName
    path: Name  # pattern with `*`: `team-a/*`
    on: Annotated[tuple[On, ...], Meta(min_length=1, max_length=10)]
    channel: Channel
    credential: Annotated[str, Meta(max_length=200)] = ""
    url: Annotated[str, Meta(max_length=2_000)] = ""  # of a webhook without a secret in its address
    to: Annotated[tuple[Receiver, ...], Meta(max_length=50)] = ()  # e-mail addresses
    sla: Receiver | Count = 0  # executions that run longer have missed it


class NotificationsQuery(Asked, frozen=True):
    """Filter of a list of notifications."""

    path: Name | None = None  # the pattern, as it is written
    cursor: str | None = None  # `next` of the previous page
    limit: Limit = 100


class NotificationRow(Answer, frozen=True):
    """A notification; `problem` says why it cannot be sent, and is empty in lists."""

    notification_id: str
    path: str
    on: list[str]
    channel: str
    credential: str = ""
    url: str = ""
    to: list[str] = field(default_factory=list)
    sla: str | int = 0
    created_at: int = 0
    created_by: str = ""
    problem: str = ""


class NotificationRows(Answer, frozen=True):
    """A page of notifications by id; `next` is the cursor of the next page."""

    notifications: list[NotificationRow]
    next: str | None = None


class NotificationTested(Answer, frozen=True):
    """The outbox message of a test: `GET /api/outbox/{number}` says what became of it."""

    number: int
