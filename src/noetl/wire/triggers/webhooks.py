"""Bodies about webhooks. Tested in tests/server/api/triggers."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, field

from noetl.triggers.webhook import Auth, Encoding
from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Count, Name, Version
from noetl.wire.triggers.fields import Long, Short, TriggerName

MOST_TEXT = 4_000_000  # characters of the body of a test


class WebhookAsked(Asked, frozen=True):
    """Create a webhook: a playbook, a form of authentication and its credential."""

    name: TriggerName
    path: Name
    auth: Auth
    credential: Name  # its value is the shared secret
    version: Version | None = None  # default: the latest at each delivery
    header: Short = ""
    prefix: Short = ""
    encoding: Encoding = "hex"
    timestamp_header: Short = ""
    tolerance: Short | Count = "5m"
    dedup: Long = ""
    payload: dict[str, Any] = field(default_factory=dict)
    wait: Short | Count = 0
    paused: bool = False


class DeliveryAsked(Asked, frozen=True):
    """A delivery that the server signs and receives, as if a sender had made it."""

    body: Annotated[str, Meta(max_length=MOST_TEXT)] = "{}"
    content_type: Short = "application/json"
    headers: dict[Annotated[str, Meta(pattern="^[A-Za-z0-9-]{1,100}$")], Short] = field(default_factory=dict)
    query: Long = ""


class WebhookRow(Answer, frozen=True):
    """A webhook; `owner` is the playbook whose `triggers` define it, if one does.

    `problem` says why it refuses deliveries, if it does. In lists it is empty, unless what is stored cannot be read.
    """

    webhook_id: str
    url: str  # path on this server
    path: str
    auth: str
    credential: str
    header: str
    paused: bool
    version: int | None = None
    owner: str = ""
    prefix: str = ""
    encoding: str = "hex"
    timestamp_header: str = ""
    tolerance: str | int = "5m"
    dedup: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    wait: str | int = 0
    created_at: int = 0
    created_by: str = ""
    changed_at: int = 0
    problem: str = ""


class WebhookRows(Answer, frozen=True):
    """A page of webhooks by id; `next` is the cursor of the next page."""

    webhooks: list[WebhookRow]
    next: str | None = None


class Delivered(Answer, frozen=True):
    """The execution of a delivery; `repeated` if an earlier delivery started it.

    If the webhook waits, also its outcome, if it has ended.
    """

    execution_id: str
    status: str
    repeated: bool = False
    result: Any = None
    error: Any = None
