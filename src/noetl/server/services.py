"""Dependencies of the routes, built by `wiring`. Tested in tests/server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from noetl.dsl.grammar.kinds import Kinds
from noetl.masking.readers import ReaderMask
from noetl.masking.values import KnownValues
from noetl.ports import (
    AuditTrail,
    BlobStore,
    Catalog,
    CivilClock,
    Credentials,
    EventLog,
    IdempotencyKeys,
    Runtime,
    Tokens,
    WorkQueue,
)
from noetl.ports.keychain import AccessTokens
from noetl.ports.letters import DeadLetters
from noetl.ports.outbox import Outbox
from noetl.ports.people import People
from noetl.ports.schedules import Schedules
from noetl.ports.triggers import Subscriptions, Triggers
from noetl.server.auth.gate import Gate
from noetl.server.auth.people.oidc import OpenIdConnect
from noetl.server.auth.people.sessions import Sessions
from noetl.server.auth.quota import Quota
from noetl.server.auth.vault import Vault
from noetl.server.background.subscriptions.feed import OpenSource
from noetl.server.cache.abouts import Abouts
from noetl.server.cache.catalog_lookup import CatalogLookup
from noetl.server.cache.checkpoints import Checkpoints
from noetl.server.cache.collected import Collected
from noetl.server.cache.step_times import StepTimesCache
from noetl.server.cache.tracks import Tracks
from noetl.server.control_plane import LocalControlPlane
from noetl.server.feeds.reader import Reader
from noetl.server.operations.refused_deliveries import RefusedDeliveries
from noetl.server.processes.side import SideProcesses
from noetl.server.store_probe import StoreProbe
from noetl.server.workers.registry import WorkerRegistry
from noetl.settings import CHECK_SECONDS, HttpSettings, TracingSettings
from noetl.wire.answers import CredentialTested

if TYPE_CHECKING:
    from noetl.server.metrics.server_metrics import Metrics


class Store(EventLog, WorkQueue, Catalog, DeadLetters, Protocol):
    """Log, queue, catalog and dead letters of one store."""


class Team(Runtime, Tokens, Credentials, AccessTokens, IdempotencyKeys, AuditTrail, Protocol):
    """Workers, tokens, credentials, idempotency keys and the audit trail."""


class TestCredential(Protocol):
    """Connects with a credential and reports what it reached."""

    async def __call__(self, name: str, kind: str, data: Mapping[str, Any], url: str | None) -> CredentialTested: ...


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a server."""

    hosts: tuple[str, ...] = ()  # allowed names in the Host header; none: any
    origins: tuple[str, ...] = ()  # other origins whose pages may call
    most_requests: int = 2_000  # concurrent requests; above it 503
    most_unanswered: int = 4_000  # messages waiting for a commit; above it 429
    http: HttpSettings = field(default_factory=HttpSettings)
    check_s: float = CHECK_SECONDS  # time to check one playbook; after it 422


@dataclass(frozen=True)
class Services:
    """What a route can use."""

    server_id: str
    control: LocalControlPlane
    store: Store
    team: Team
    blobs: BlobStore
    outbox: Outbox
    schedules: Schedules
    triggers: Triggers
    subscriptions: Subscriptions
    open_source: OpenSource  # of a subscription
    refused: RefusedDeliveries
    people: People
    sessions: Sessions
    oidc: OpenIdConnect | None
    clock: CivilClock
    kinds: Kinds
    cannot_run: Callable[[Iterable[str]], tuple[str, ...]]
    side: SideProcesses
    checks: str  # `module:function` that checks a playbook in a process of its own
    language: str  # `module:function` that answers about a playbook's text there
    gate: Gate
    registry: WorkerRegistry
    reader: Reader
    tracks: Tracks
    checkpoints: Checkpoints
    step_times: StepTimesCache
    collected: Collected
    lookups: CatalogLookup
    metrics: Metrics
    probe: StoreProbe
    streams: Quota  # open event streams
    answers: Quota  # bytes of large answers that are being sent
    test_credential: TestCredential
    renderings: Quota = field(default_factory=lambda: Quota(64, 8, "renderings"))
    readings: Quota = field(default_factory=lambda: Quota(64, 8, "questions about texts"))
    abouts: Abouts = field(default_factory=Abouts)  # what playbooks say of themselves
    deliveries: Quota = field(default_factory=lambda: Quota(200, 200, "deliveries"))
    vault: Vault | None = None  # None: no key is configured, so credentials cannot be stored
    bounds: Bounds = field(default_factory=Bounds)
    public_url: str = ""  # under which people reach this server
    tracing: TracingSettings = field(default_factory=TracingSettings)
    mask: ReaderMask = field(default_factory=ReaderMask)  # over all that readers get
    handed_out: KnownValues = field(default_factory=KnownValues)  # credentials that workers have got here
    resolving: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))  # results in memory
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
