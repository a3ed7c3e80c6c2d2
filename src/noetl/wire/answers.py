"""Bodies of answers. Ids are strings, times are milliseconds since the Unix epoch.

Fields are added, never renamed or removed. Tested in tests/server/api/test_*.py.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all answers."""


class Started(Answer, frozen=True):
    """A started execution; `repeated` if an earlier request with its key did it.

    With `wait_ms`, also its outcome, if it has ended. Of many, one may be `rejected` by a limit with `on_limit: reject`: it
    has no id, and `error` says which limit.
    """

    execution_id: str
    status: str
    path: str
    playbook: str
    repeated: bool = False
    ended_at: int | None = None
    result: Any = None
    error: Any = None


class StartedMany(Answer, frozen=True):
    """Executions started by one request, in order, and their number by status."""

    executions: list[Started]
    counts: dict[str, int]


class ExecutionRow(Answer, frozen=True):
    """An execution in a list."""

    execution_id: str
    status: str
    path: str = ""
    playbook: str = ""
    parent: str | None = None
    tags: list[str] = []
    started_at: int = 0
    ended_at: int | None = None
    last_seq: int = 0
    needs_signal: bool = False
    signals: list[str] = []  # names of the signals that it needs, as far as they are known
    error: Any = None


class Executions(Answer, frozen=True):
    """A page of executions, the newest first; `next` is the cursor of the next page."""

    executions: list[ExecutionRow]
    next: str | None = None
    scanned_to: str | None = None  # of a search that stopped: the cursor with which to search further back
    scanned_at: int | None = None  # when that execution started


class Execution(ExecutionRow, frozen=True):
    """An execution in detail."""

    result: Any = None
    ctx: dict[str, Any] = {}
    workload: dict[str, Any] = {}
    steps: dict[str, Any] = {}  # step → number of runs done, failed, skipped, running, and of tokens parked
    failures: list[Any] = []
    warnings: list[dict[str, Any]] = []  # what it passed over without failing: step, message, seq; the first 50
    children: list[str] = []
    compensated: bool | None = None
    paused: bool = False
    duration_ms: int = 0
    trace_id: str | None = None  # if the execution is traced
    trace_url: str | None = None  # where people see its trace, if it is sent


class Preview(Answer, frozen=True):
    """What an action would do; of a request with `dry_run`, which changes nothing."""

    says: str
    ends: list[str] = []  # step-runs
    children: list[str] = []  # executions that are cancelled too
    undoes: list[str] = []  # steps that are compensated, in this order
    steps: list[str] = []  # that run again


class Told(Answer, frozen=True):
    """A message was applied."""

    execution_id: str
    status: str
    last_seq: int
    warnings: list[str] = []  # of a message that was applied and may not do what was meant
    preview: Preview | None = None  # of a dry run: nothing was changed


class EventRow(Answer, frozen=True):
    """One event: its envelope, and the step it belongs to."""

    event_id: str
    execution_id: str
    seq: int
    event_type: str
    timestamp: int
    source: str
    entity_type: str
    entity_id: str
    parent_id: str | None
    step_run_id: str | None
    task_run_id: str | None
    iteration: int | None
    attempt: int | None
    status: str | None
    duration_ms: float | None
    payload: dict[str, Any]
    version: int
    step: str | None


class Events(Answer, frozen=True):
    """A page of events; `next` is the `after` of the next page, if there may be more.

    `previous` is the `before` of the page before, if there may be one: of a page that was asked for with `before`.
    """

    events: list[EventRow]
    next: int | None = None
    previous: int | None = None


class State(Answer, frozen=True):
    """The state after an event, as plain data; with `diff`, the changes."""

    seq: int
    event: str | None
    status: str
    checksum: str
    state: dict[str, Any]
    changes: list[Any] | None = None


class DeadlineRow(Answer, frozen=True):
    """When something times out, or how long it may take if its start is unknown."""

    what: str
    at: int | None = None
    ms: float | None = None


class CauseRefs(Answer, frozen=True):
    """What a cause refers to."""

    signal: str | None = None
    child: str | None = None  # an execution
    pool: str | None = None  # whose workers are missing; empty: the default pool
    worker: str | None = None
    steps: list[str] = []  # of a join: the steps from which others can still arrive
    letter: str | None = None  # a dead letter
    limits: list[str] = []  # that are reached: max_parallel, concurrency, rate, `kind http`, `pool gpu`


class StandingRow(Answer, frozen=True):
    """Something that has not ended, and what it waits for."""

    what: str  # token, run, item, child, message, execution
    name: str
    step: str
    cause: Literal[
        "signal", "gate", "join", "child", "sleep", "delay", "worker", "room", "paused", "items", "work", "message"
    ]
    refs: CauseRefs
    waits_for: str  # the cause as a sentence
    moved_by: str
    since: int
    until: int | None = None
    arrived: int | None = None  # of a join: tokens that are there; of a loop: items that have ended
    needed: int | None = None  # of a join: tokens that it needs; of a loop: its items, if known
    read: dict[str, Any] | None = None  # the values that the last decision on it read
    deadlines: list[DeadlineRow] = []  # every time-out that applies, earliest first
    signal: str | None = None
    decision: bool = False  # the playbook reads `approved` of that signal
    answered_by: str | None = None  # who or what may send it


class ChoiceRow(Answer, frozen=True):
    """A past decision of a gate, a router or a policy, with its reasons."""

    seq: int
    at: int
    step: str
    decided: str
    because: list[str] = []


class FailureRow(Answer, frozen=True):
    """The first failure that ended an execution, or that it went on after."""

    step: str  # empty: no step, but the execution as a whole
    error: Any
    fix: str  # what helps; empty: that is not known


class Explained(Answer, frozen=True):
    """Explanation of an execution's state after the event `seq`."""

    execution_id: str
    status: str
    error: Any
    standing: list[StandingRow]
    choices: list[ChoiceRow]  # the newest 1,000
    seq: int = 0
    failure: FailureRow | None = None


class Forked(Answer, frozen=True):
    """A new execution that continues from the middle of another one."""

    execution_id: str  # empty of a dry run
    source: str
    seq: int
    status: str
    preview: Preview | None = None  # of a dry run: nothing was started


class RefusedAction(Answer, frozen=True):
    """An execution that an action of many does not change, and why."""

    execution_id: str
    reason: str


class ManyTold(Answer, frozen=True):
    """What an action on many executions did, or with `dry_run` would do."""

    count: int  # executions that were changed, or would be
    by_status: dict[str, int]  # those, by the status before
    executions: list[str]  # the first 100
    refused: list[RefusedAction]  # the first 100
    dry_run: bool = False
    is_whole: bool = True  # false: more than 1,000 match
    started: list[str] = []  # of a retry: the first 100 new executions


class TrialTask(Answer, frozen=True):
    """A task that a trial may run."""

    step: str
    label: str
    kind: str


class Trial(Answer, frozen=True):
    """A trial of a text; with `dry_run`, it has no execution."""

    execution_id: str | None
    playbook: str  # content hash of what runs
    source: str | None  # the execution whose history it continues
    seq: int  # up to this event; 0: it begins anew
    tasks: list[TrialTask]  # that may run; others are taken from the history, or are not reached


class Diagnosed(Answer, frozen=True):
    """A diagnostic of a playbook."""

    code: str
    severity: str
    message: str
    fix: str
    path: str
    line: int
    column: int


class Registered(Answer, frozen=True):
    """A playbook in the catalog; `version` is 0 if it was only validated."""

    path: str
    version: int
    playbook: str
    diagnostics: list[Diagnosed]


class RecentExecution(Answer, frozen=True):
    """One of the last executions of a path."""

    execution_id: str
    status: str
    started_at: int
    ended_at: int | None = None


class CatalogEntry(Answer, frozen=True):
    """A path of the catalog, with its latest version."""

    path: str
    version: int
    playbook: str
    registered_at: int
    versions: int = 1
    name: str = ""
    description: str = ""
    tags: list[str] = []
    labels: dict[str, str] = {}
    recent: list[RecentExecution] = []  # the newest first


class CatalogPage(Answer, frozen=True):
    """A page of the catalog, ordered by path."""

    playbooks: list[CatalogEntry]
    next: str | None = None


class CatalogVersion(Answer, frozen=True):
    """A version of a playbook; lists omit `content`."""

    path: str
    version: int
    playbook: str
    registered_at: int
    content: str | None = None


class Versions(Answer, frozen=True):
    """The versions of a path, the newest first."""

    path: str
    versions: list[CatalogVersion]


class Difference(Answer, frozen=True):
    """Changes between two versions: as text, and as places in the canonical tree."""

    path: str
    since: int
    version: int
    text: str
    changes: list[Any]


class UiSchema(Answer, frozen=True):
    """JSON Schema and defaults for a form that starts a playbook."""

    path: str
    version: int
    schema: dict[str, Any]
    defaults: dict[str, Any]


class Removed(Answer, frozen=True):
    """Number of removed items."""

    removed: int


class VariableMetadata(Answer, frozen=True):
    """Where a value of `ctx` comes from."""

    by: str  # run, `run→step` for an arc, signal or person that wrote last
    created_at: int  # milliseconds since the epoch
    changed_at: int
    writes: int
    seq: int  # of the event with the last write


class Vars(Answer, frozen=True):
    """The values of `ctx`."""

    execution_id: str
    vars: dict[str, Any]
    metadata: dict[str, VariableMetadata] = {}


class AlertPayload(Answer, frozen=True):
    """What an alert is about; an empty text is not known."""

    alert: str
    execution_id: str | None = None
    workflow_ref: str = ""
    step_id: str = ""
    error_class: str = ""
    error_rate: float | None = None
    link: str = ""  # to the execution


class Variable(Answer, frozen=True):
    """One value of `ctx`."""

    execution_id: str
    name: str
    value: Any
    metadata: VariableMetadata | None = None


class CredentialRow(Answer, frozen=True):
    """A credential without its data."""

    name: str
    kind: str
    version: int
    about: dict[str, Any] = {}
    created_at: int = 0
    updated_at: int = 0


class CredentialDetail(CredentialRow, frozen=True):
    """A credential with the names of its fields and its use, without any value.

    `fields` is null if no key of this server opens it. `playbooks` are those whose latest version names it; `used_by` is
    the execution that read it last.
    """

    fields: list[str] | None = None
    playbooks: list[str] = []
    used_at: int | None = None
    used_by: str | None = None


class CredentialTested(Answer, frozen=True):
    """What a credential reached; `ok` is null if its type has nothing to connect to."""

    name: str
    kind: str
    ok: bool | None
    reached: str = ""
    message: str = ""


class CredentialRows(Answer, frozen=True):
    """Credentials by name."""

    credentials: list[CredentialRow]


class DataKeyRow(Answer, frozen=True):
    """A key that seals credentials, and the master key that wraps it, by name."""

    key_id: str
    master: str
    created_at: int
    is_current: bool  # it is wrapped by the master key that new ones are wrapped by


class DataKeyRows(Answer, frozen=True):
    """The keys that seal credentials, the newest first."""

    master: str  # that wraps new keys
    keys: list[DataKeyRow]


class KeysRotated(Answer, frozen=True):
    """Number of data keys that were wrapped again, and the master key that wraps them."""

    rotated: int
    master: str


class KeychainEntry(Answer, frozen=True):
    """An entry of a keychain without secrets; `fields` names its own fields.

    `stored`: this server stores its credential. Otherwise the environment of a worker may hold it.
    """

    name: str
    kind: str | None
    credential: str
    stored: bool
    version: int | None = None
    updated_at: int | None = None
    expires_at: int | None = None
    ttl_seconds: float | None = None
    fields: list[str] = []


class KeychainEntries(Answer, frozen=True):
    """The keychain of a playbook."""

    path: str
    playbook: str
    entries: list[KeychainEntry]


class WorkerRow(Answer, frozen=True):
    """A worker."""

    worker_id: str
    pool: str
    tags: list[str]
    capacity: int
    active: int
    status: str
    host: str
    version: str
    registered_at: int
    seen_at: int


class HeldWork(Answer, frozen=True):
    """A step-run, or items of it, that a worker has leased."""

    execution_id: str
    run: str
    attempt: int
    lease_until: int


class WorkerDetails(WorkerRow, frozen=True):
    """A worker with what it holds."""

    holds: list[HeldWork]


class FinishedRun(Answer, frozen=True):
    """A step-run that a worker ended."""

    execution_id: str
    path: str  # of the playbook
    run: str
    state: str  # done, failed
    started_at: int
    ended_at: int


class FinishedRuns(Answer, frozen=True):
    """What a worker ended lately, newest first, as far as the newest events tell."""

    runs: list[FinishedRun]
    looked: int  # how many of the newest events were looked at, at most


class WorkerRows(Answer, frozen=True):
    """The known workers."""

    workers: list[WorkerRow]


class WorkerStatus(Answer, frozen=True):
    """The status of a worker."""

    worker_id: str
    status: str


class UnmetTags(Answer, frozen=True):
    """Tags that no ready worker of a pool has together, and the work that needs them."""

    tags: list[str]
    queued: int
    oldest: int | None = None


class PoolRow(Answer, frozen=True):
    """A pool with its workers and its queue."""

    pool: str
    workers: int
    capacity: int
    queued: int
    leased: int
    dead: int
    kept: int = 0  # slots among `capacity` for playbooks that have no work leased
    oldest: int | None = None
    unmet: list[UnmetTags] = []  # tags that queued work needs and that no ready worker has together


class PoolRows(Answer, frozen=True):
    """Pools with workers or work."""

    pools: list[PoolRow]


class FlowRow(Answer, frozen=True):
    """Queued work of one flow: flows of a pool and a priority take turns."""

    pool: str
    priority: int
    flow: str
    queued: int
    oldest: int | None = None


class LimitRow(Answer, frozen=True):
    """What counts for a limit, and what waits for it: executions, or work.

    Work counts for limits of the server, such as `kind http` and `pool gpu`.
    """

    group: str
    running: int
    waiting: int
    oldest: int | None = None
    of: str = "executions"  # or work
    limit: int | None = None  # of work: how much runs at once; None: the server has no such limit any more


class WorkAhead(Answer, frozen=True):
    """Queued work, how many work items of its pool go before it, and its limits."""

    work_id: str
    ahead: int
    limits: list[str] = []  # limits of the server that it counts for, such as `kind http`


class LineRow(Answer, frozen=True):
    """Where an execution and its queued work stand in the queue."""

    work: list[WorkAhead]
    group: str
    position: int
    running: list[str]
    held_by: str = ""  # which of its limits an execution waits for: limit, above (of the server) or rate
    turn_at: int = 0  # when its rate admits an execution
    full: dict[str, int] = {}  # limits of the server that are reached, with their numbers


class QueueState(Answer, frozen=True):
    """Pools, flows and limits with what waits in them."""

    pools: list[PoolRow]
    flows: list[FlowRow]
    limits: list[LimitRow]


class TokenRow(Answer, frozen=True):
    """A token without its secret."""

    token_id: str
    role: str
    name: str
    created_at: int
    created_by: str
    expires_at: int | None
    revoked_at: int | None
    pool: str | None
    namespaces: tuple[str, ...]
    used_at: int | None


class TokenRows(Answer, frozen=True):
    """The tokens."""

    tokens: list[TokenRow]


class TokenMade(TokenRow, frozen=True):
    """A new token with its secret, which is shown only once."""

    secret: str


class AuditRow(Answer, frozen=True):
    """An audit entry."""

    number: int
    at: int
    actor: str
    action: str
    entity: str
    detail: dict[str, Any]
    before: str = ""
    after: str = ""


class AuditLink(AuditRow, frozen=True):
    """An audit entry with its place in the hash chain."""

    digest: str = ""
    position: int = 0
    previous: str = ""
    hash: str = ""


class AuditHead(Answer, frozen=True):
    """The end of the hash chain."""

    position: int
    hash: str


class AuditLinks(Answer, frozen=True):
    """Audit entries in the order of the hash chain."""

    entries: list[AuditLink]
    head: AuditHead
    next: int | None = None


class AuditBreak(Answer, frozen=True):
    """The first place at which the hash chain does not hold."""

    position: int
    number: int | None
    reason: str
    detail: str


class AuditVerified(Answer, frozen=True):
    """The result of a verification of the audit trail."""

    is_intact: bool
    entries: int
    pending: int  # entries that a server links within a second
    head: AuditHead
    broken: AuditBreak | None = None


class AuditRows(Answer, frozen=True):
    """Audit entries, the newest first."""

    entries: list[AuditRow]
    next: int | None = None


class Health(Answer, frozen=True):
    """Status and version of a server."""

    status: str
    version: str
    server: str
    time: int = 0  # of the clock that servers and workers share, in milliseconds since the epoch
    checks: dict[str, str] = {}


class RenderedValue(Answer, frozen=True):
    """The value of a rendered template."""

    result: Any
