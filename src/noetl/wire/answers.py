"""Bodies of answers. Ids are strings, times are milliseconds since the epoch.

Fields are added, never renamed or removed. Tested in tests/server/test_api_*.py.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What every answer is."""


class Started(Answer, frozen=True):
    """An execution that was started; `repeated` where the same Idempotency-Key had started it before.

    How it ended is told where the request waited for it, and it did.
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
    """Executions that were started by one request, in the order of its payloads, and how many have which status."""

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
    error: Any = None


class Executions(Answer, frozen=True):
    """A page of executions, the newest first; `next` is the cursor of the one after."""

    executions: list[ExecutionRow]
    next: str | None = None


class Execution(ExecutionRow, frozen=True):
    """Everything that people ask of one execution."""

    result: Any = None
    ctx: dict[str, Any] = {}
    workload: dict[str, Any] = {}
    steps: dict[str, Any] = {}  # step → how many runs are done, failed, skipped
    failures: list[Any] = []
    children: list[str] = []
    compensated: bool | None = None
    paused: bool = False
    duration_ms: int = 0


class Told(Answer, frozen=True):
    """A message was applied."""

    execution_id: str
    status: str
    last_seq: int


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
    """A page of events; `next` is the `after` of the one that follows, where there may be more."""

    events: list[EventRow]
    next: int | None = None


class State(Answer, frozen=True):
    """The state after an event, as plain data; with `diff`, what changed."""

    seq: int
    event: str | None
    status: str
    checksum: str
    state: dict[str, Any]
    changes: list[Any] | None = None


class Explained(Answer, frozen=True):
    """Why an execution is where it is."""

    execution_id: str
    status: str
    error: Any
    standing: list[Any]
    choices: list[Any]


class Forked(Answer, frozen=True):
    """A new execution that goes on from the middle of an old one."""

    execution_id: str
    source: str
    seq: int
    status: str


class Diagnosed(Answer, frozen=True):
    """One finding of the checker."""

    code: str
    severity: str
    message: str
    fix: str
    path: str
    line: int
    column: int


class Registered(Answer, frozen=True):
    """A playbook in the catalog; `version` is 0 where it was only checked."""

    path: str
    version: int
    playbook: str
    diagnostics: list[Diagnosed]


class CatalogEntry(Answer, frozen=True):
    """A path of the catalog, with its latest version."""

    path: str
    version: int
    playbook: str
    registered_at: int
    versions: int = 1


class CatalogPage(Answer, frozen=True):
    """A page of the catalog in order of path."""

    playbooks: list[CatalogEntry]
    next: str | None = None


class CatalogVersion(Answer, frozen=True):
    """A version of a playbook; `content` only where one was asked for."""

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
    """What changed between two versions: as text, and as places in the canonical tree."""

    path: str
    since: int
    version: int
    text: str
    changes: list[Any]


class UiSchema(Answer, frozen=True):
    """What a form that starts a playbook shows: a JSON Schema, and the defaults."""

    path: str
    version: int
    schema: dict[str, Any]
    defaults: dict[str, Any]


class Removed(Answer, frozen=True):
    """How many were removed."""

    removed: int


class Vars(Answer, frozen=True):
    """The values of `ctx`."""

    execution_id: str
    vars: dict[str, Any]


class Variable(Answer, frozen=True):
    """One value of `ctx`."""

    execution_id: str
    name: str
    value: Any


class CredentialRow(Answer, frozen=True):
    """A credential without what it holds."""

    name: str
    kind: str
    version: int
    about: dict[str, Any] = {}
    created_at: int = 0
    updated_at: int = 0


class CredentialRows(Answer, frozen=True):
    """The credentials by name."""

    credentials: list[CredentialRow]


class KeychainEntry(Answer, frozen=True):
    """An entry of a keychain without what it holds; `fields` are the names of what it says itself.

    `stored` tells whether this server keeps the credential behind it; a worker's environment may hold it instead.
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


class WorkerRows(Answer, frozen=True):
    """The workers that are known."""

    workers: list[WorkerRow]


class WorkerStatus(Answer, frozen=True):
    """How a worker stands."""

    worker_id: str
    status: str


class PoolRow(Answer, frozen=True):
    """A pool: its workers, and its queue."""

    pool: str
    workers: int
    capacity: int
    queued: int
    leased: int
    dead: int
    oldest: int | None = None


class PoolRows(Answer, frozen=True):
    """The pools that have workers or work."""

    pools: list[PoolRow]


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


class TokenRows(Answer, frozen=True):
    """The tokens that were made."""

    tokens: list[TokenRow]


class TokenMade(TokenRow, frozen=True):
    """A new token: the only time that its secret is shown."""

    secret: str


class AuditRow(Answer, frozen=True):
    """One act."""

    number: int
    at: int
    actor: str
    action: str
    entity: str
    detail: dict[str, Any]


class AuditRows(Answer, frozen=True):
    """Acts, the newest first."""

    entries: list[AuditRow]
    next: int | None = None


class Health(Answer, frozen=True):
    """The process is there, and what it is."""

    status: str
    version: str
    server: str
    checks: dict[str, str] = {}


class RenderedValue(Answer, frozen=True):
    """What a template came to."""

    result: Any
