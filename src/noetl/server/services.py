"""What the routes of one server share: the control plane, the store, and whoever else they ask.

Made by `wiring`. Holds no logic. Tested with the routes in tests/server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from noetl.dsl.kinds import Kinds
from noetl.ports import AuditTrail, BlobStore, Catalog, Clock, Credentials, EventLog, Keys, Runtime, Tokens, WorkQueue
from noetl.ports.letters import DeadLetters
from noetl.ports.outbox import Outbox
from noetl.server.auth import Gate
from noetl.server.control import LocalControl
from noetl.server.credentials import Vault
from noetl.server.handouts import Handouts
from noetl.server.lookups import Lookups
from noetl.server.reading import Reader

if TYPE_CHECKING:
    from noetl.server.metrics import Metrics


class Store(EventLog, WorkQueue, Catalog, DeadLetters, Protocol):
    """A store that is all of these."""


class Team(Runtime, Tokens, Credentials, Keys, AuditTrail, Protocol):
    """What a server keeps for a team."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a server takes on at once, and from whom."""

    hosts: tuple[str, ...] = ()  # names in the Host header; none: any
    origins: tuple[str, ...] = ()  # other origins whose pages may call
    most_requests: int = 2_000  # at once; then 503
    most_unanswered: int = 4_000  # messages that wait for a commit; then 429


@dataclass(frozen=True)
class Services:
    """What a route may use."""

    server_id: str
    control: LocalControl
    store: Store
    team: Team
    blobs: BlobStore
    outbox: Outbox
    clock: Clock
    kinds: Kinds
    cannot_run: Callable[[Iterable[str]], tuple[str, ...]]
    gate: Gate
    handouts: Handouts
    reader: Reader
    lookups: Lookups
    metrics: Metrics
    vault: Vault | None = None  # None: no key was given, so credentials cannot be kept
    bounds: Bounds = field(default_factory=Bounds)
    checking: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))  # playbooks checked at once
    resolving: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))  # results held whole at once
    streams: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(500))  # open at once
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
