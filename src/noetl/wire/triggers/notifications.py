"""Bodies about notifications. Tested in tests/server/api/triggers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from noetl.triggers.notification import Channel, On
from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Count, Name
from noetl.wire.triggers.fields import Long, Short, TriggerName


class NotificationAsked(Asked, frozen=True):
    """Create a notification: a pattern of paths, events and a channel."""

    name: TriggerName
    path: Name  # pattern with `*`: `team-a/*`
    on: Annotated[tuple[On, ...], Meta(min_length=1, max_length=10)]
    channel: Channel
    credential: Short = ""
    url: Long = ""  # of a webhook without a secret in its address
    to: Annotated[tuple[Short, ...], Meta(max_length=50)] = ()  # e-mail addresses
    sla: Short | Count = 0  # executions that run longer have missed it
    paused: bool = False


class NotificationRow(Answer, frozen=True):
    """A notification; `owner` is the playbook that defines it, if one does.

    `problem` says why it cannot be sent. In lists it is empty, unless what is stored cannot be read.
    """

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
    paused: bool = False
    owner: str = ""
    problem: str = ""


class NotificationRows(Answer, frozen=True):
    """A page of notifications by id; `next` is the cursor of the next page."""

    notifications: list[NotificationRow]
    next: str | None = None


class NotificationTested(Answer, frozen=True):
    """The outbox message of a test: `GET /api/outbox/{number}` says what became of it."""

    number: int
