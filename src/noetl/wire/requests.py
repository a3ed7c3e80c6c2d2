"""Bodies and query parameters of requests. Tested in tests/server/api/test_*.py."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Text = Annotated[str, Meta(max_length=10_000)]
Name = Annotated[str, Meta(min_length=1, max_length=500)]
Limit = Annotated[int, Meta(ge=1, le=1_000)]
MOST = 2**53  # largest integer that every JSON parser can hold
MOST_STARTS = 1_000  # executions per request
Count = Annotated[int, Meta(ge=0, le=MOST)]
Number = Annotated[int, Meta(ge=-MOST, le=MOST)]
Seconds = Annotated[int, Meta(ge=1, le=86_400)]
Version = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Content = Annotated[str, Meta(max_length=2_000_000)]  # text of a playbook


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all bodies and queries: unknown fields are refused."""


class StartAsked(Asked, frozen=True):
    """Base of all starts: a playbook by path, content hash or text."""

    path: Name | None = None
    version: Version | None = None  # default: the latest
    playbook: Name | None = None  # content hash, as `POST /api/catalog` returned it
    content: Content | None = None  # YAML; it is validated, and registered as by-content/<hash>
    tags: tuple[Name, ...] = ()
    priority: Annotated[int, Meta(ge=-1_000, le=1_000)] = 0
    parent: Name | None = None  # the parent execution
    trace: Annotated[str, Meta(max_length=200)] | None = None  # a W3C traceparent; recorded with the start
    wait_ms: Annotated[int, Meta(ge=0, le=30_000)] = 0  # wait this long for the end


class Execute(StartAsked, frozen=True):
    """Start an execution of a playbook."""

    payload: dict[str, Any] = {}  # merged into `workload`


class ExecuteMany(StartAsked, frozen=True, kw_only=True):
    """Start an execution for each payload; other fields apply to all."""

    payloads: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MOST_STARTS)]  # each merged into `workload`


class ExecutionsQuery(Asked, frozen=True):
    """Filter of a list of executions."""

    status: tuple[str, ...] = ()  # repeatable
    path: str | None = None  # such as orders/nightly; orders/* means all that begin with orders/
    ids: tuple[str, ...] = ()  # repeatable
    needs_signal: bool | None = None  # of executions that have not ended: whether one waits for a signal
    search: Annotated[str, Meta(max_length=500)] | None = None  # in id, path, tags, the error's message
    tag: str | None = None  # executions of POST /api/try are listed with the tag `try` only
    parent: str | None = None  # children of this execution; empty: executions without a parent
    since: Number | None = None  # milliseconds since the Unix epoch
    until: Number | None = None
    cursor: str | None = None  # `next` of the previous page
    limit: Limit = 50


class EventsQuery(Asked, frozen=True):
    """Filter of the events of an execution."""

    after: Count = 0
    before: Count | None = None  # the last events before this one, instead of the first after another
    type: tuple[str, ...] = ()  # step.done, step.*, StepDone; repeatable
    step: str | None = None
    run: str | None = None  # such as fetch#2
    iteration: Count | None = None  # item of a loop
    text: Annotated[str, Meta(min_length=1, max_length=500)] | None = None  # in the event as it is shown, in any case
    limit: Limit = 500


class FollowQuery(Asked, frozen=True):
    """Filter of a stream of events; `Last-Event-ID` wins over `after`."""

    after: Count = 0
    type: tuple[str, ...] = ()


class FeedQuery(Asked, frozen=True):
    """Filter of the stream of all executions; default: their starts and ends."""

    after: Annotated[str, Meta(max_length=10_000)] | None = None  # id of an event; `Last-Event-ID` wins over it
    type: tuple[str, ...] = ()


class AlertQuery(Asked, frozen=True):
    """Labels of an alert, and the value of its expression."""

    workflow: str = ""
    step: str = ""
    kind: str = ""
    sink: str = ""
    pool: str = ""
    worker_id: str = ""
    error_rate: float | None = None


class StateQuery(Asked, frozen=True):
    """The event whose state to return; default: the last one."""

    seq: Count | None = None
    diff: Count | None = None  # only the changes since this event


class VarsQuery(Asked, frozen=True):
    """Whether to tell where values come from, which reads the log."""

    metadata: bool = False


class ExplainQuery(Asked, frozen=True):
    """The event whose state to explain; default: the last one."""

    seq: Annotated[int, Meta(ge=1, le=MOST)] | None = None


class Cancellation(Asked, frozen=True):
    """Cancel an execution with its children, or one step."""

    reason: Text = ""
    run: str | None = None  # such as fetch#1; the name of a step means all of its active runs
    compensate: bool = False  # roll back completed steps in reverse order first, as after a failure
    abandon: bool = False  # also stop a running compensation; otherwise the request is refused
    cascade: bool = True  # children are always cancelled with their parent; only true is allowed
    dry_run: bool = False  # only say what would happen


class ExecutionsFilter(Asked, frozen=True):
    """Executions that an action applies to, as a list of executions filters them."""

    status: tuple[str, ...] = ()
    path: str | None = None  # orders/* means all that begin with orders/
    search: Annotated[str, Meta(max_length=500)] | None = None
    tag: str | None = None
    parent: str | None = None
    since: Number | None = None
    until: Number | None = None
    needs_signal: bool | None = None


class ManyCancelled(Asked, frozen=True):
    """Cancel executions by id, or all that match a query; at most 1,000."""

    ids: Annotated[tuple[str, ...], Meta(max_length=1_000)] = ()
    query: ExecutionsFilter | None = None
    reason: Text = ""
    dry_run: bool = False


class ManyRetried(Asked, frozen=True):
    """Retry executions from their failed steps, by id or by a query; at most 1,000."""

    ids: Annotated[tuple[str, ...], Meta(max_length=1_000)] = ()
    query: ExecutionsFilter | None = None
    reason: Text = ""
    latest: bool = False  # use the latest version of each playbook
    dry_run: bool = False


class SignalSent(Asked, frozen=True):
    """A signal with its data."""

    name: Name
    data: Any = None


class CtxPatch(Asked, frozen=True):
    """Changes to `ctx`; a key may be a path such as a.b."""

    writes: dict[str, Any]


class Forced(Asked, frozen=True):
    """Complete a step without its work, with this result."""

    result: Any = None
    reason: Text = ""
    dry_run: bool = False  # only say what would happen


class Fork(Asked, frozen=True):
    """Continue in a new execution from the middle of this one."""

    start: Annotated[str, Meta(min_length=1, max_length=500)]  # before the last run of this step, or after this event
    ctx: dict[str, Any] = {}
    workload: dict[str, Any] = {}
    playbook: Name | None = None  # content hash of another version
    dry_run: bool = False  # only say what would happen


class Retry(Asked, frozen=True):
    """Continue in a new execution from the failed step."""

    step: str | None = None  # default: the first step that failed
    ctx: dict[str, Any] = {}
    latest: bool = False  # use the latest version of the playbook
    reason: Text = ""  # for the audit trail
    dry_run: bool = False  # only say what would happen


class Registration(Asked, frozen=True):
    """A playbook to validate and register."""

    content: Content
    path: Name | None = None  # must equal `metadata.path` of the playbook
    check_only: bool = False
    expected: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None  # latest version that you know; 0: none
    tolerant: bool = False  # unknown keys are warnings, and left out


TRIAL = "try"  # tag of the executions that POST /api/try starts; lists leave them out


class TrialAsked(Asked, frozen=True):
    """A trial of a text: of all of it, up to a step, or of one step."""

    content: Content
    payload: dict[str, Any] = {}  # merged into `workload`
    step: Name | None = None  # run this step alone
    until: Name | None = None  # do not run what follows this step
    source: Name | None = msgspec.field(default=None, name="from")  # take recorded outputs from this execution
    dry_run: bool = False  # only tell which tasks would run


class CatalogQuery(Asked, frozen=True):
    """Filter of a list of playbooks."""

    search: Annotated[str, Meta(max_length=500)] | None = None  # in path, name, description, tags, labels
    tag: str | None = None
    label: str | None = None  # key, or key=value
    recent: Annotated[int, Meta(ge=0, le=50)] = 0  # the last executions of each path, at most 100 paths a page
    cursor: str | None = None
    limit: Limit = 100


class PlaybookQuery(Asked, frozen=True):
    """A version of a path; default: the latest."""

    path: Name
    version: Version | None = None


class DiffQuery(Asked, frozen=True):
    """Two versions to compare; default: the latest and the one before."""

    path: Name
    version: Version | None = None
    since: Version | None = None


class GraphQuery(Asked, frozen=True):
    """The version whose text has the lines of the steps; default: the oldest."""

    version: Version | None = None


class ResultQuery(Asked, frozen=True):
    """A stored result, and a range of its bytes."""

    ref: Annotated[str, Meta(min_length=1, max_length=2_000)]
    start: Count = 0
    length: Count | None = None


class BlobQuery(Asked, frozen=True):
    """A blob, and the lease that authorises the worker."""

    ref: Annotated[str, Meta(min_length=1, max_length=2_000)]
    work: str = ""
    epoch: Number = 0
    worker: str = ""
    start: Count = 0
    length: Count | None = None
    meta: str = "{}"  # a JSON object, stored with the bytes


class CredentialPut(Asked, frozen=True):
    """A credential to store; its `data` is encrypted and never returned."""

    data: dict[str, Any]
    kind: Name = "generic"
    about: dict[str, Any] = {}


class CredentialTest(Asked, frozen=True):
    """How to test a credential; `url` is requested with it (default: its `test_url`)."""

    url: str | None = None


class KeychainQuery(Asked, frozen=True):
    """An execution, or a path with a version (default: the latest)."""

    execution_id: Name | None = None
    path: Name | None = None
    version: Version | None = None


class TokenAsked(Asked, frozen=True):
    """A token to create."""

    role: str
    name: Annotated[str, Meta(max_length=200)] = ""
    expires_s: Annotated[int, Meta(ge=1, le=10**10)] | None = None
    pool: str | None = None
    namespaces: tuple[str, ...] = ()


class WorkerRegistered(Asked, frozen=True):
    """A worker without a session."""

    worker_id: Name
    pool: str = ""
    tags: tuple[str, ...] = ()
    capacity: Annotated[int, Meta(ge=1, le=10_000)] = 1
    host: str = ""
    version: str = ""


class WorkerSeen(Asked, frozen=True):
    """A heartbeat of a worker without a session."""

    active: Count = 0


class PageQuery(Asked, frozen=True):
    """Sign a browser in."""

    token: str = ""


class AuditQuery(Asked, frozen=True):
    """Filter of the audit trail."""

    actor: str | None = None
    entity: str | None = None
    cursor: Number | None = None
    limit: Limit = 100


class AuditChainQuery(Asked, frozen=True):
    """Page of the hash chain of the audit trail."""

    after: Number = 0
    limit: Limit = 100


class AuditVerifyQuery(Asked, frozen=True):
    """A place of the hash chain and the hash that it had, such as `17:9f86…`."""

    expect: str | None = None


class Rendered(Asked, frozen=True):
    """A template, or data with templates, to render with the values of an execution."""

    execution_id: Name
    template: Any
    strict: bool = True
    args: dict[str, Any] = {}
