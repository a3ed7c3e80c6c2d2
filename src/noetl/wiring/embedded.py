"""Composition root: tool kinds, store, and the whole system in one process.

Tested in tests/tools/test_wiring.py and tests/acceptance/executions/test_run*.py.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from time import time
from typing import TYPE_CHECKING, Any, Protocol

from noetl.dsl.grammar.kinds import Kinds
from noetl.model.errors import InvalidInput
from noetl.ports import (
    AuditTrail,
    Blobs,
    BlobStore,
    Catalog,
    ControlPlane,
    Credentials,
    DerivedTables,
    Doorbell,
    EventLog,
    IdempotencyKeys,
    Runtime,
    Tokens,
    WorkQueue,
)
from noetl.ports.letters import DeadLetters
from noetl.settings import ServerSettings, Settings, credential, store_option
from noetl.tools import kinds
from noetl.wiring.availability import not_built

if TYPE_CHECKING:
    from pathlib import Path

    from noetl.model.events import Event
    from noetl.ports.outbox import Outbox, OutboxIn
    from noetl.server.auth.vault import Vault
    from noetl.server.background.outbox_relay import OutboxRelay
    from noetl.server.background.rebuild import Rebuild
    from noetl.server.background.result_gc import ResultGC
    from noetl.server.control_plane import LocalControlPlane
    from noetl.server.services import Services
    from noetl.stores.postgres.admin import PostgresAdmin
    from noetl.worker.http.egress import Egress
    from noetl.worker.loop import Worker
    from noetl.worker.processes.children import ChildPool
    from noetl.worker.tool_context import WorkerResources

_GRACE_MS = 86_400_000  # minimum age of unreferenced results before they are removed


class SystemClock:
    """Clock of this machine."""

    def now(self) -> int:
        return int(time() * 1000)

    async def sleep(self, seconds: float) -> None:
        import asyncio  # checking a playbook must not load an event loop

        await asyncio.sleep(seconds)


class Store(EventLog, WorkQueue, Catalog, DeadLetters, Protocol):
    """Store with all these ports."""


class Team(Runtime, Tokens, Credentials, IdempotencyKeys, AuditTrail, Protocol):
    """Workers, tokens, credentials, keys and audit trail of a store."""


def language_kinds() -> Kinds:
    """Return the tool kinds that a playbook can use; each is loaded on first use."""
    return kinds()


def kind_problems() -> tuple[str, ...]:
    """Return why kinds of installed packages cannot be used, once loaded."""
    return kinds().problems


def cannot_run(names: Iterable[str]) -> tuple[str, ...]:
    """Return the tool kinds that no worker of this installation can run."""
    known = kinds()
    in_pipeline = ("workbook",)  # run by the pipeline itself, like kinds that suspend it
    return tuple(
        name
        for name in names
        if name not in known or not (name in in_pipeline or known[name].suspends or known.runner(name) is not None)
    )


def open_store(settings: Settings) -> Store:
    """Open the store of the settings; create it if it does not exist."""
    if settings.database:
        from noetl.stores.postgres.store import PostgresStore

        return PostgresStore(settings.database)
    from noetl.stores.sqlite.store import SqliteStore

    try:
        settings.store.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        place = settings.store.parent
        raise InvalidInput(
            f"Cannot create the folder {place}: {error.strerror}. Use another store with --store PATH."
        ) from None
    return SqliteStore(settings.store)


def open_team(store: Store) -> Team:
    """Return workers, tokens, credentials and the audit trail of a store."""
    from noetl.stores.postgres.store import PostgresStore
    from noetl.stores.postgres.team import PostgresTeam
    from noetl.stores.sqlite.store import SqliteStore
    from noetl.stores.sqlite.team import SqliteTeam

    if isinstance(store, PostgresStore):
        return PostgresTeam(store.database)
    if isinstance(store, SqliteStore):
        return SqliteTeam(store.database)
    raise InvalidInput("This store has no workers, tokens or credentials.")


def open_rebuild(store: Store) -> Rebuild:
    """Return the rebuild of a store's projections from its log."""
    from noetl.server.background.rebuild import Rebuild
    from noetl.server.cache.plan_cache import PlanCache

    return Rebuild(store, open_derived(store), PlanCache(store))


def open_derived(store: Store) -> DerivedTables:
    """Return the derived tables of a store, for repair and checks against its log."""
    from noetl.stores.sqlite.store import SqliteStore

    if isinstance(store, SqliteStore):
        from noetl.stores.sqlite.derived import SqliteDerived

        return SqliteDerived(store)
    from noetl.stores.postgres.derived import PostgresDerived
    from noetl.stores.postgres.store import PostgresStore

    assert isinstance(store, PostgresStore)
    return PostgresDerived(store)


def open_blobs(settings: Settings, store: Store) -> BlobStore:
    """Return the storage of large results: `db`, the store, and `file`, a folder."""
    from noetl.blobs.files import FileBlobs
    from noetl.blobs.shelves import BlobRouter

    files: dict[str, BlobStore] = {"file": FileBlobs(settings.blobs)}
    if settings.database:
        from noetl.blobs.postgres import PostgresBlobs
        from noetl.stores.postgres.store import PostgresStore

        if isinstance(store, PostgresStore):
            return BlobRouter({"db": PostgresBlobs(store.database), **files})
    from noetl.blobs.database import DatabaseBlobs
    from noetl.stores.sqlite.store import SqliteStore

    if isinstance(store, SqliteStore):
        return BlobRouter({"db": DatabaseBlobs(store.database), **files})
    return BlobRouter(files)


def open_collector(settings: Settings, store: Store) -> ResultGC:
    """Return the garbage collector of stored results."""
    from noetl.engine.queries.result_gc import Terms
    from noetl.server.background.result_gc import ResultGC

    terms = Terms(settings.result_days * 86_400_000, _GRACE_MS)
    return ResultGC(store, open_blobs(settings, store), SystemClock(), terms, settings.collect_s)


def open_doorbell(settings: Settings) -> Doorbell | None:
    """Return the notifier of a PostgreSQL store; None for SQLite, which is polled."""
    if not settings.database:
        return None
    from noetl.doorbells.pg_notify import PgNotify

    return PgNotify(settings.database)


def database_admin(url: str) -> PostgresAdmin:
    """Return the administration of a PostgreSQL database."""
    from noetl.stores.postgres.admin import PostgresAdmin

    return PostgresAdmin(url)


def archived(place: Path, execution_id: str) -> list[Event]:
    """Return the log of an execution from an archive."""
    from noetl.stores.postgres.archive import read_archive

    return read_archive(place, execution_id)


@dataclass(frozen=True, slots=True)
class Embedded:
    """Control plane, store and workers in this process."""

    settings: Settings
    store: Store
    control: LocalControlPlane
    credential: Callable[[str], Awaitable[Mapping[str, Any]]]
    on_outbox: list[Callable[[], None]] = field(default_factory=list)  # callbacks on the first use by a task

    def outbox(self) -> Outbox:
        """Return the outbox of the store, for a task."""
        from noetl.wiring.outbox import open_outbox

        for callback in self.on_outbox:
            callback()
        return open_outbox(self.store)

    def open_relay(self) -> AbstractAsyncContextManager[OutboxRelay]:
        """Open the relay that delivers outbox messages."""
        from noetl.wiring.outbox import open_relay
        from noetl.worker.http.clients import HttpClient

        client = HttpClient(egress_rules(self.settings))
        return open_relay(self.settings, self.store, SystemClock(), kinds(), client, self.credential)

    @asynccontextmanager
    async def run_worker(self, pool: str, children: ChildPool | None = None) -> AsyncIterator[Worker]:
        """Run a worker for a pool; on exit cancel it, but keep given children.

        If it was drained, the leases of its unfinished work expire at once, so that another worker continues it.
        """
        if children is None:
            async with child_processes(self.settings) as own, self.run_worker(pool, own) as worker:
                yield worker
            return
        from asyncio import create_task, gather, sleep

        from noetl.worker.loop import Worker

        name = f"{os.uname().nodename}:{os.getpid()}"
        blobs = open_blobs(self.settings, self.store)
        async with worker_resources(
            self.settings, self.control, blobs, self.credential, children, self.control.defaults, self.outbox
        ) as shared:
            worker = Worker(name, shared, pools=(pool,), capacity=self.settings.capacity)
            running = create_task(worker.run(), name="noetl-worker")
            try:
                await sleep(0)  # it subscribes now, so that a start here hands its work out in the same commit
                yield worker
            finally:
                unfinished = worker.draining and worker.busy
                running.cancel()
                await gather(running, return_exceptions=True)
                if unfinished:
                    await self.store.disown(name, (), SystemClock().now())


@asynccontextmanager
async def worker_resources(
    settings: Settings,
    control: ControlPlane,
    blobs: Blobs,
    resolve: Callable[[str], Awaitable[Mapping[str, Any]]],
    children: ChildPool,
    layer: Mapping[str, Any],
    outbox: Callable[[], OutboxIn],
) -> AsyncIterator[WorkerResources]:
    """Open what a worker's tasks share; `layer` is read again for each task."""
    from noetl.worker.http.clients import HttpClient
    from noetl.worker.steps.results import StoredResults
    from noetl.worker.tool_context import WorkerResources

    client, clock = HttpClient(egress_rules(settings)), SystemClock()
    shared = WorkerResources(
        control,
        kinds(),
        kinds(),
        clock,
        children,
        blobs,
        client.get,
        resolve,
        StoredResults(blobs, clock),
        defaults=layer,
        folder=os.getcwd(),
        outbox=outbox,
    )
    try:
        yield shared
    finally:
        await shared.shared.close()
        await client.close()


@asynccontextmanager
async def child_processes(settings: Settings) -> AsyncIterator[ChildPool]:
    """Open the child processes of a worker; close them on exit."""
    from noetl.worker.processes.children import ChildPool

    children = ChildPool(**_confinement(settings))
    try:
        yield children
    finally:
        await children.close()


@asynccontextmanager
async def embedded(settings: Settings) -> AsyncIterator[Embedded]:
    """Run the control plane on the store of the settings."""
    from noetl.server.background.maintenance import run_maintenance
    from noetl.server.control_plane import LocalControlPlane

    store = open_store(settings)
    try:
        if settings.database:
            await store.version()  # a database that is not there is one error, not one of each background task
        control = LocalControlPlane(
            store,
            SystemClock(),
            defaults=settings.defaults,
            lease_s=settings.lease_ms / 1000,
            max_attempts=settings.max_attempts,
            blobs=open_blobs(settings, store),
            doorbell=open_doorbell(settings),
            look_s=1.0 if settings.database else 0.05,
            cannot_run=cannot_run,
            unavailable=not_built,
            derived=open_derived(store),
            liveness_s=settings.liveness_s,
        )
        async with control, run_maintenance(getattr(store, "tend", None), SystemClock()):
            yield Embedded(settings, store, control, _credential)
    finally:
        await store.close()


@asynccontextmanager
async def serving(settings: Settings, server: ServerSettings) -> AsyncIterator[tuple[Services, Embedded]]:
    """Run the services of a server, from which its HTTP application is built."""
    from noetl.server.app import running
    from noetl.server.auth.gate import Gate, is_loopback, needs_token
    from noetl.server.auth.vault import stored_credentials
    from noetl.server.cache.catalog_lookup import CatalogLookup
    from noetl.server.feeds.reader import Reader
    from noetl.server.metrics.server_metrics import Metrics
    from noetl.server.processes.side import SideProcesses
    from noetl.server.services import Bounds, Services
    from noetl.server.workers.registry import WorkerRegistry
    from noetl.wiring import checks

    clock = SystemClock()
    async with embedded(settings) as app:
        store, team = app.store, open_team(app.store)
        live = [token for token in await team.tokens() if token.revoked_at is None]
        has_tokens = any(token.expires_at is None or token.expires_at > clock.now() for token in live)
        required = needs_token(
            server.auth, server.host, has_tokens=has_tokens, option=store_option(os.environ, settings)
        )
        names = ("localhost", "127.0.0.1", "::1", server.host) if is_loopback(server.host) else ()
        vault = _vault(settings, server)
        services = Services(
            server_id=f"{os.uname().nodename}:{os.getpid()}",
            control=app.control,
            store=store,
            team=team,
            blobs=open_blobs(settings, store),
            outbox=app.outbox(),
            clock=clock,
            kinds=kinds(),
            cannot_run=cannot_run,
            side=SideProcesses(),
            checks=f"{checks.__name__}:{checks.check.__name__}",
            gate=Gate(team, clock, required=required),
            registry=WorkerRegistry(app.control, store, team, clock, lease_ms=settings.lease_ms),
            reader=Reader(store),
            lookups=CatalogLookup(store),
            metrics=Metrics(app.control.cached_plan),
            vault=vault,
            bounds=Bounds((*names, *server.hosts), server.origins, check_s=server.check_s),
        )
        served = replace(app, credential=stored_credentials(_credential, team, vault))
        async with served.open_relay() as relay, running(services, open_collector(settings, store), relay):
            yield services, served


def _vault(settings: Settings, server: ServerSettings) -> Vault | None:
    """Return the vault, with the configured key or SQLite's key file.

    Servers that share a database must share a key, so there it must be configured.
    """
    from noetl.server.auth.vault import Vault, keys_of, vault_beside

    if server.key:
        return Vault(keys_of(server.key))
    return None if settings.database else vault_beside(settings.store.with_name("key"))


async def _credential(name: str) -> Mapping[str, Any]:
    return credential(os.environ, name)


def _confinement(settings: Settings) -> dict[str, Any]:
    """Return the limits of task processes; the sandbox hides the store's files."""
    own = [settings.store.with_name(settings.store.name + ending) for ending in ("", "-wal", "-shm")]
    hidden = [str(path) for path in (*own, settings.blobs, settings.locks)]
    return {"memory": settings.task_memory_mb << 20, "sandbox": settings.sandbox, "hidden": hidden}


def egress_rules(settings: Settings) -> Egress | None:
    """Return the egress rules of HTTP requests, or None if all hosts are allowed."""
    if not settings.egress_allow and not settings.egress_deny and settings.egress_private:
        return None
    from noetl.worker.http.egress import Egress

    return Egress(settings.egress_allow, settings.egress_deny, settings.egress_private)
