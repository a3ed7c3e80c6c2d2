"""Bodies and answers in the older words, of the routes that workers and callers before the session protocol use.

Tested in tests/server/test_seed_paths.py.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from noetl.model.messages import Report as Done
from noetl.model.work import Lease
from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Name, Number, Seconds, Version


class SeedExecute(Asked, frozen=True):
    """Start an execution in the older words: `playbook_id` or `playbook_path` is a path, `context` the payload."""

    playbook_id: Name | None = None
    playbook_path: Name | None = None
    path: Name | None = None
    version: Version | str | None = None
    context: dict[str, Any] | None = None
    input_payload: dict[str, Any] | None = None
    parameters: dict[str, Any] | None = None
    payload: dict[str, Any] | None = None
    tags: tuple[Name, ...] = ()
    priority: Annotated[int, Meta(ge=-1_000, le=1_000)] = 0


class SeedLease(Asked, frozen=True):
    """Lease work in the older words."""

    worker_id: Name
    lease_seconds: Seconds | None = None  # at least the server's own time
    pool: str = ""
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 1


class SeedHeartbeat(Asked, frozen=True):
    """Keep one lease, in the older words."""

    worker_id: Name
    epoch: Number | None = None  # of the lease that this worker has here, where none is named
    extend_seconds: Seconds | None = None  # at least the server's own time


class EventSent(Asked, frozen=True):
    """What happened on a lease: an event in the older words, with `event_type` and `node_id`; or a frame `report`.

    `action_started`, `action_completed` with its `result`, and `action_error` with its `error` are taken.
    """

    event_type: str | None = None
    node_id: Name | None = None  # the work, as the lease called it
    execution_id: str | int | None = None
    event_id: Annotated[str, Meta(max_length=500)] | int | None = None  # sent again under it, nothing is done twice
    worker_id: Name | None = None  # whoever holds the work, where none is named
    epoch: Number | None = None
    status: str | None = None
    node_name: str | None = None
    node_type: str | None = None
    context: Any = None
    result: Any = None
    error: Any = None
    meta: Any = None
    metadata: Any = None
    timestamp: Any = None
    type: str | None = None
    id: str = ""
    report: Done | None = None
    want: int = 0
    worker: str = ""


class Job(Answer, frozen=True):
    """A piece of work in the older words; `action` is the step as JSON, `context` what it may read."""

    id: str
    execution_id: str
    node_id: str
    node_name: str
    action: str
    context: Any
    status: str
    priority: int
    attempts: int
    epoch: int
    lease_until: int
    worker_id: str


class Leased(Answer, frozen=True):
    """Work that was leased: as leases, and the first of them in the older words; null where there is none."""

    id: str
    leases: list[Lease]
    job: Job | None = None


class EventTaken(Answer, frozen=True):
    """What became of an event: applied, duplicate, or late; and the work that was wanted with it."""

    id: str
    status: str
    leases: list[Lease]
