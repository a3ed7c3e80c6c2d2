"""Bodies and query parameters of requests.

What a field does not name cannot be asked for: there is none for `spec`, `auth` or a pool of another's playbook.
Tested in tests/server/test_api_*.py.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Text = Annotated[str, Meta(max_length=10_000)]
Name = Annotated[str, Meta(min_length=1, max_length=500)]
Limit = Annotated[int, Meta(ge=1, le=1_000)]
MOST = 2**53  # of every number: what all readers of JSON can hold
MOST_STARTS = 1_000  # of one request
Count = Annotated[int, Meta(ge=0, le=MOST)]
Number = Annotated[int, Meta(ge=-MOST, le=MOST)]
Seconds = Annotated[int, Meta(ge=1, le=86_400)]
Version = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every request's body or query is: a field that is not known is refused."""


class StartAsked(Asked, frozen=True):
    """What every start says: a playbook by `path` (and `version`), by content hash, or by its text, and how it is to run."""

    path: Name | None = None
    version: Version | None = None  # the latest, where none is named
    playbook: Name | None = None  # content hash, as `POST /api/catalog` gave it
    content: Annotated[str, Meta(max_length=2_000_000)] | None = (
        None  # YAML; it is checked, and kept as by-content/<hash>
    )
    tags: tuple[Name, ...] = ()
    priority: Annotated[int, Meta(ge=-1_000, le=1_000)] = 0
    parent: Name | None = None  # an execution that this one belongs to
    trace: Annotated[str, Meta(max_length=200)] | None = None  # a W3C traceparent
    wait_ms: Annotated[int, Meta(ge=0, le=30_000)] = 0  # for so long the answer waits for the end


class Execute(StartAsked, frozen=True):
    """Start an execution of a playbook: by `path` (and `version`), by content hash, or by its text."""

    payload: dict[str, Any] = {}  # merged into `workload`


class ExecuteMany(StartAsked, frozen=True, kw_only=True):
    """Start an execution of a playbook for each payload; everything else is said of all of them."""

    payloads: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MOST_STARTS)]  # each merged into `workload`


class ExecutionsQuery(Asked, frozen=True):
    """Which executions to list."""

    status: tuple[str, ...] = ()  # may be given often
    path: str | None = None
    search: Annotated[str, Meta(max_length=500)] | None = None  # in id, path, tags, the error's message
    tag: str | None = None
    parent: str | None = None
    since: Number | None = None  # milliseconds since the epoch
    until: Number | None = None
    cursor: str | None = None  # `next` of the page before
    limit: Limit = 50


class EventsQuery(Asked, frozen=True):
    """Which events of an execution to give."""

    after: Count = 0
    type: tuple[str, ...] = ()  # step.done, step.*, StepDone; may be given often
    step: str | None = None
    limit: Limit = 500


class FollowQuery(Asked, frozen=True):
    """Which events to follow; `Last-Event-ID` wins over `after`."""

    after: Count = 0
    type: tuple[str, ...] = ()


class FeedQuery(Asked, frozen=True):
    """Which events of all executions to follow; without `type`, those that begin or end an execution."""

    type: tuple[str, ...] = ()


class StateQuery(Asked, frozen=True):
    """At which event to show the state; the last one, where none is named."""

    seq: Count | None = None
    diff: Count | None = None  # only what changed since this event


class Cancellation(Asked, frozen=True):
    """End an execution, its children with it, or one step of it."""

    reason: Text = ""
    run: str | None = None  # such as fetch#1; a step's name stands for all of its runs that have not ended
    compensate: bool = False  # what was done is undone first, newest first, as after a failure
    abandon: bool = False  # where something is being undone: give that up too; without it a cancellation is refused
    cascade: bool = True  # children are always cancelled with their parent; only true is allowed


class SignalSent(Asked, frozen=True):
    """A signal and what comes with it."""

    name: Name
    data: Any = None


class CtxPatch(Asked, frozen=True):
    """Changes of `ctx`; a key may be a path such as a.b."""

    writes: dict[str, Any]


class Forced(Asked, frozen=True):
    """Take a step as done without its work, with this result."""

    result: Any = None
    reason: Text = ""


class Fork(Asked, frozen=True):
    """Go on in a new execution from the middle of this one."""

    start: Annotated[str, Meta(min_length=1, max_length=500)]  # before the last run of this step, or after this event
    ctx: dict[str, Any] = {}
    workload: dict[str, Any] = {}
    playbook: Name | None = None  # content hash of another version


class Retry(Asked, frozen=True):
    """Go on in a new execution from the step that failed."""

    step: str | None = None  # another step than the first that failed
    ctx: dict[str, Any] = {}
    latest: bool = False  # with the latest version of the playbook


class Registration(Asked, frozen=True):
    """A playbook to be checked and put in the catalog."""

    content: Annotated[str, Meta(max_length=2_000_000)]
    path: Name | None = None  # must be the playbook's own `metadata.path`, where it is named
    check_only: bool = False


class CatalogQuery(Asked, frozen=True):
    """Which playbooks to list."""

    search: Annotated[str, Meta(max_length=500)] | None = None
    cursor: str | None = None
    limit: Limit = 100


class PlaybookQuery(Asked, frozen=True):
    """Which version of a path is meant; the latest, where none is named."""

    path: Name
    version: Version | None = None


class DiffQuery(Asked, frozen=True):
    """Which two versions to compare; the one before, and the latest."""

    path: Name
    version: Version | None = None
    since: Version | None = None


class ResultQuery(Asked, frozen=True):
    """Which stored result is meant, and which bytes of it."""

    ref: Annotated[str, Meta(min_length=1, max_length=2_000)]
    start: Count = 0
    length: Count | None = None


class BlobQuery(Asked, frozen=True):
    """Which blob is meant, and on the strength of which lease a worker asks."""

    ref: Annotated[str, Meta(min_length=1, max_length=2_000)]
    work: str = ""
    epoch: Number = 0
    worker: str = ""
    start: Count = 0
    length: Count | None = None
    meta: str = "{}"  # a JSON object; kept with what is put


class CredentialPut(Asked, frozen=True):
    """A credential to keep; its `data` is sealed before it is stored and never shown again."""

    data: dict[str, Any]
    kind: Name = "generic"
    about: dict[str, Any] = {}


class KeychainQuery(Asked, frozen=True):
    """Whose keychain is meant: an execution's, or that of a path; the latest version, where none is named."""

    execution_id: Name | None = None
    path: Name | None = None
    version: Version | None = None


class TokenAsked(Asked, frozen=True):
    """A token to make; its secret is shown once."""

    role: str
    name: Annotated[str, Meta(max_length=200)] = ""
    expires_s: Annotated[int, Meta(ge=1, le=10**10)] | None = None
    pool: str | None = None


class WorkerRegistered(Asked, frozen=True):
    """A worker that tells of itself without a session."""

    worker_id: Name
    pool: str = ""
    tags: tuple[str, ...] = ()
    capacity: Annotated[int, Meta(ge=1, le=10_000)] = 1
    host: str = ""
    version: str = ""


class WorkerSeen(Asked, frozen=True):
    """A sign of life."""

    active: Count = 0


class AuditQuery(Asked, frozen=True):
    """Which acts to list."""

    actor: str | None = None
    entity: str | None = None
    cursor: Number | None = None
    limit: Limit = 100


class Rendered(Asked, frozen=True):
    """A template, or data that holds some, to be rendered with what an execution knows."""

    execution_id: Name
    template: Any
    strict: bool = True
    args: dict[str, Any] = {}
