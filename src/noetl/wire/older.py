"""Bodies of the older API. Tested in tests/server/api/test_seed_paths.py."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from noetl.model.messages import Report as Done
from noetl.model.work import Lease
from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Name, Number, Seconds, Version


class SeedExecute(Asked, frozen=True):
    """Start an execution (older form); `context` is the payload."""

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
    """Lease work (older form)."""

    worker_id: Name
    lease_seconds: Seconds | None = None  # no shorter than the server's lease time
    pool: str = ""
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 1


class SeedHeartbeat(Asked, frozen=True):
    """Renew one lease (older form)."""

    worker_id: Name
    epoch: Number | None = None  # default: that of the worker's current lease
    extend_seconds: Seconds | None = None  # no shorter than the server's lease time


class EventSent(Asked, frozen=True):
    """An event of leased work, with `event_type` and `node_id`; or a frame `report`.

    Types: `action_started`, `action_completed` with `result`, and `action_error` with `error`. Work with `loop_items` is a range
    of a loop: an event of one item has its `index`; without it, `result` is the list of all results, in order.
    """

    event_type: str | None = None
    node_id: Name | None = None  # the `id` of the lease
    execution_id: str | int | None = None
    event_id: Annotated[str, Meta(max_length=500)] | int | None = None  # idempotency key
    worker_id: Name | None = None  # default: the worker that holds the work
    epoch: Number | None = None
    index: Annotated[int, Meta(ge=0)] | None = None  # of a loop item; also in `context`, `meta`, `metadata`
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


class JobItem(Answer, frozen=True):
    """An item of a loop to run; `context` holds what the item adds to that of the job."""

    index: int
    item: Any
    context: dict[str, Any]


class Job(Answer, frozen=True):
    """A work item (older form); `action` is the step as JSON, `context` its scopes.

    Of a loop, `loop_items` are those to run, and `context` has what the first of them adds.
    """

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
    loop_items: list[JobItem] | None = None


class Leased(Answer, frozen=True):
    """Leased work; `job` is the first lease in the older form, or null."""

    id: str
    leases: list[Lease]
    job: Job | None = None


class EventTaken(Answer, frozen=True):
    """Outcome of an event (applied, duplicate or late), and new work."""

    id: str
    status: str
    leases: list[Lease]
