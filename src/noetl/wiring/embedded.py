"""Composition root: tool kinds, store, and the whole system in one process.

Tested in tests/tools/test_wiring.py and tests/acceptance/executions/test_run*.py.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from logging import getLogger
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from noetl.clock import SteadyClock
from noetl.dsl.grammar.kinds import Kinds
from noetl.environ import variables
from noetl.model.errors import InvalidInput, InvalidSetting
from noetl.observe.task_counts import TaskCounts
from noetl.ports import (
    AuditTrail,
    Blobs,
    BlobStore,
    Catalog,
    Clock,
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
from noetl.ports.keychain import AccessTokens
from noetl.ports.letters import DeadLetters
from noetl.private_files import make_private_folder
from noetl.settings import QUEUE_KIND_LIMITS, SANDBOX_WRITE, ServerSettings, Settings, store_option
from noetl.tools import kinds
from noetl.wiring.availability import not_built
from noetl.wiring.credentials import StoredCredentials, credential_vault, key_file

if TYPE_CHECKING:
    from pathlib import Path

    from noetl.model.events import Event
    from noetl.observe.export.counts import ExportCounts
    from noetl.ports.keychain import TokenExchange
    from noetl.ports.outbox import Outbox, OutboxIn
    from noetl.ports.people import People
    from noetl.server.auth.people.oidc import OpenIdConnect
    from noetl.server.auth.vault import Vault
    from noetl.server.background.log_export import LogExport
    from noetl.server.background.outbox_relay import OutboxRelay
    from noetl.server.background.pruning import Pruning
    from noetl.server.background.reactions.ended_triggers import EndedTriggers
    from noetl.server.background.reactions.notifications import Notifications
    from noetl.server.background.rebuild import Rebuild
    from noetl.server.background.result_gc import ResultGC
    from noetl.server.background.schedules import Scheduler
    from noetl.server.background.subscriptions.feed import OpenSource
    from noetl.server.background.subscriptions.poller import SubscriptionPoller
    from noetl.server.control_plane import LocalControlPlane, Require
    from noetl.server.metrics.server_metrics import Metrics
    from noetl.server.operations.restore import Held
    from noetl.server.processes.side import SideProcesses
    from noetl.server.services import Bounds, Services
    from noetl.stores.postgres.admin import PostgresAdmin
    from noetl.worker.http.egress import Egress
    from noetl.worker.loop import Worker
    from noetl.worker.processes.children import ChildPool
    from noetl.worker.processes.walls import Walls
    from noetl.worker.tool_context import WorkerResources

_log = getLogger(__name__)
WARM_UP_S = 5.0  # after its start, a lasting worker has children that wait for Python code
_GRACE_MS = 86_400_000  # minimum age of unreferenced results before they are removed
_CHECKS: dict[str, Any] = {
    "checks": "noetl.wiring.checks:check",
    "language": "noetl.wiring.checks:ask_language",
}  # in processes of their own


class Store(EventLog, WorkQueue, Catalog, DeadLetters, Protocol):
    """Store with all these ports, and the clock that all processes on it share."""

    @property
    def clock(self) -> SteadyClock: ...


class Team(Runtime, Tokens, Credentials, AccessTokens, IdempotencyKeys, AuditTrail, Protocol):
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


def open_store(settings: Settings, *, to_read: bool = False) -> Store:
    """Open the store of the settings; create it if it does not exist.

    A caller that only reads also gets a store that cannot be written.
    """
    if settings.database:
        from noetl.stores.postgres.store import PostgresStore

        return PostgresStore(settings.database)
    from noetl.stores.sqlite.database import Database
    from noetl.stores.sqlite.store import SqliteStore

    try:
        make_private_folder(settings.store.parent)
    except OSError as error:
        place = settings.store.parent
        raise InvalidInput(
            f"Cannot create the folder {place}: {error.strerror}. Use another store with --store PATH."
        ) from None
    return SqliteStore(settings.store, Database(settings.store, to_read=to_read))


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


def open_people(store: Store) -> People:
    """Return users, groups and sessions of a store."""
    from noetl.stores.people.postgres import PostgresPeople
    from noetl.stores.people.sqlite import SqlitePeople
    from noetl.stores.postgres.store import PostgresStore
    from noetl.stores.sqlite.store import SqliteStore

    if isinstance(store, PostgresStore):
        return PostgresPeople(store.database)
    if isinstance(store, SqliteStore):
        return SqlitePeople(store.database)
    raise InvalidInput("This store has no users.")


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


async def write_backup(settings: Settings, path: Path) -> None:
    """Write a backup of a SQLite store, which may be in use."""
    from noetl.stores.sqlite.backup import write_backup
    from noetl.stores.sqlite.database import Database

    database = Database(settings.store, to_read=True)
    try:
        await write_backup(database, path)
    finally:
        await database.close()


async def restore_store(settings: Settings, backup: Path | None) -> Held:
    """Put a backup in place, or take the store; hold what was in flight.

    The store appears when that is done.
    """
    from msgspec.structs import replace

    from noetl.stores.sqlite.backup import copy_store, is_backup, refuse_other_log

    source = backup or settings.store
    in_place = settings.store.exists() and settings.store.samefile(source)
    if settings.database or (in_place and not is_backup(source)):
        return await _hold(settings)
    refuse_other_log(settings.store)
    part = settings.store.with_name(settings.store.name + ".restoring")
    make_private_folder(part.parent)
    copy_store(source, part)
    found = await _hold(replace(settings, store=part))
    os.replace(part, settings.store)
    return found


async def _hold(settings: Settings) -> Held:
    from noetl.server.control_plane import LocalControlPlane
    from noetl.server.operations.restore import hold_for_review
    from noetl.wiring.outbox import open_outbox
    from noetl.wiring.triggers import open_schedules, open_triggers

    store = open_store(settings)
    try:
        control = LocalControlPlane(store, store.clock, defaults=settings.defaults, blobs=open_blobs(settings, store))
        tables = (open_derived(store), open_outbox(store), open_schedules(store), open_triggers(store))
        return await hold_for_review(control, store, *tables, store.clock)
    finally:
        await store.close()


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
    return ResultGC(store, open_blobs(settings, store), store.clock, terms, settings.collect_s)


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
    credential: StoredCredentials
    on_outbox: list[Callable[[], None]] = field(default_factory=list)  # callbacks on the first use by a task
    counts: TaskCounts = field(default_factory=TaskCounts)  # of its workers

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

        egress = egress_rules(_with_outbox(self.settings))
        parts = (self.settings, self.store, self.store.clock, kinds(), HttpClient(egress), self.credential, egress)
        return open_relay(*parts)

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
            self.settings,
            self.control,
            blobs,
            self.credential,
            children,
            self.control.defaults,
            self.outbox,
            self.store.clock,
            self.credential.exchange(name),
            self.counts,
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
                    await self.store.disown(name, (), self.store.clock.now())


@asynccontextmanager
async def worker_resources(
    settings: Settings,
    control: ControlPlane,
    blobs: Blobs,
    resolve: Callable[[str], Awaitable[Mapping[str, Any]]],
    children: ChildPool,
    layer: Mapping[str, Any],
    outbox: Callable[[], OutboxIn],
    clock: Clock,
    exchange: TokenExchange | None = None,
    counts: TaskCounts | None = None,
) -> AsyncIterator[WorkerResources]:
    """Open what a worker's tasks share; `layer` is read again for each task."""
    from noetl.masking.values import in_process
    from noetl.worker.http.clients import HttpClient
    from noetl.worker.steps.results import StoredResults
    from noetl.worker.tool_context import WorkerResources

    settings = confined(settings, several_users=False)  # unless the caller has decided
    rules = egress_rules(settings)
    client = HttpClient(rules)
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
        walls=_walls(settings, children.scratch),
        egress=rules,
        secret_folders=settings.secret_folders,
        exchange=exchange,
        refresh_s=settings.refresh_s,
        counts=TaskCounts() if counts is None else counts,
        image=settings.image,
    )
    try:
        with in_process(shared.secrets.known):
            yield shared
    finally:
        await shared.shared.close()
        await client.close()


@asynccontextmanager
async def child_processes(settings: Settings) -> AsyncIterator[ChildPool]:
    """Open the child processes of a worker; close them on exit."""
    from noetl.worker.processes.children import ChildPool

    children = ChildPool(**_confinement(confined(settings, several_users=False)))
    try:
        yield children
    finally:
        await children.close()


@asynccontextmanager
async def embedded(settings: Settings, *, apart: bool = False) -> AsyncIterator[Embedded]:
    """Run the control plane on the store of the settings.

    With `apart`, for a server, heavy templates of decisions are evaluated in processes of their own, and starts whose
    credentials are missing are refused.
    """
    from noetl.observe.logs.commits import CommitLog
    from noetl.observe.traces.sending import send_traces
    from noetl.server.background.maintenance import run_maintenance
    from noetl.server.control_plane import LocalControlPlane
    from noetl.server.processes.side import SideProcesses

    if apart:
        check_kind_limits(settings)
    store, side = open_store(settings), SideProcesses() if apart else None
    try:
        if settings.database:
            # Reads its clock too. A database that is not there is one error, not one of each background task.
            await store.version()
        control = LocalControlPlane(
            store,
            store.clock,
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
            ageing_s=settings.ageing_s,
            side=side,
            credentials=_required_credentials(store) if apart else None,
        )
        maintenance, log = run_maintenance(getattr(store, "tend", None), store.clock), CommitLog(control.cached_plan)
        register = control.sequencer.hooks.register
        if log.is_on:
            register(commits=log.committed)
        async with control, maintenance, send_traces(settings, store, control.plan, register):
            yield Embedded(settings, store, control, StoredCredentials(settings, lambda: open_team(store), store.clock))
    finally:
        if side is not None:
            await side.close()
        await store.close()


def check_kind_limits(settings: Settings) -> None:
    """Check that limits name kinds that exist. Raises InvalidSetting."""
    known = kinds()
    for name in settings.work_limits:
        what, _, which = name.partition(" ")
        if what == "kind" and which not in known:
            from noetl.dsl.diagnostic import did_you_mean

            hint = did_you_mean(which, known) or f" The kinds are {', '.join(sorted(known))}."
            told = f"{QUEUE_KIND_LIMITS} names the kind `{which}`, which does not exist.{hint}"
            raise InvalidSetting(told, variable=QUEUE_KIND_LIMITS)


def _required_credentials(store: Store) -> Require:
    from noetl.server.auth.required_credentials import RequiredCredentials

    return RequiredCredentials(open_team(store), store.clock, variables).require


@asynccontextmanager
async def serving(
    settings: Settings, server: ServerSettings, own_token: str = ""
) -> AsyncIterator[tuple[Services, Embedded]]:
    """Run the services of a server, from which its HTTP application is built."""
    from noetl.observe.export.counts import ExportCounts
    from noetl.server.app import running
    from noetl.server.cache.catalog_lookup import CatalogLookup
    from noetl.server.processes.side import SideProcesses
    from noetl.server.services import Services
    from noetl.server.store_probe import StoreProbe
    from noetl.server.workers.registry import WorkerRegistry
    from noetl.wiring.credential_test import CredentialTests
    from noetl.wiring.triggers import trigger_parts

    async with embedded(settings, apart=True) as app:
        store, team, clock = app.store, open_team(app.store), app.store.clock
        access, several_users = await _access(store, team, settings, server, own_token)
        vault = await _open_vault(settings, server.key, team, clock.now())
        own, exported = confined(settings, several_users=several_users), ExportCounts(clock)
        credential, side = StoredCredentials(own, lambda: team, clock, vault), SideProcesses()
        services = Services(
            server_id=f"{os.uname().nodename}:{os.getpid()}",
            control=app.control,
            store=store,
            team=team,
            blobs=open_blobs(settings, store),
            outbox=app.outbox(),
            **trigger_parts(store, team, clock),
            open_source=_sources(own, server, credential, side, clock),
            clock=clock,
            kinds=kinds(),
            cannot_run=cannot_run,
            side=side,
            **_CHECKS,
            registry=WorkerRegistry(app.control, store, team, clock, lease_ms=settings.lease_ms),
            **_readers(store, app.control),
            lookups=CatalogLookup(store),
            metrics=_metrics(app, exported),
            probe=StoreProbe(store),
            test_credential=CredentialTests(egress_rules(own), clock),
            vault=vault,
            **_limits(server),
            **_shown(settings),
            **access,
        )
        served = replace(app, settings=own, credential=credential)
        jobs = _jobs(settings, app.store, services, exported)
        async with served.open_relay() as relay, running(services, relay, *jobs), _exposed(settings, services):
            yield services, served


@asynccontextmanager
async def _exposed(settings: Settings, services: Services) -> AsyncIterator[None]:
    from noetl.observe.exporter import exporting
    from noetl.observe.pushing import pushing
    from noetl.server.api.admin.health import metrics_text

    async def text() -> bytes:
        return await metrics_text(services)

    async with exporting(text, settings.metrics), pushing(text, settings.metrics, services.server_id):
        yield


def _metrics(app: Embedded, exports: ExportCounts) -> Metrics:
    from noetl.server.metrics.server_metrics import Metrics

    also = (*app.control.counts.counted, *app.counts.counted, *exports.counted)
    return Metrics(app.control.cached_plan, also, is_on=app.settings.metrics.enabled)


def _shown(settings: Settings) -> dict[str, Any]:
    """Return what masks answers, and how they link to traces."""
    from noetl.masking.readers import ReaderMask

    return {"mask": ReaderMask(settings.redact_keys), "tracing": settings.tracing}


def _readers(store: Store, control: LocalControlPlane) -> dict[str, Any]:
    """Return what reads the log for queries, each with a cache of its own."""
    from noetl.server.cache.checkpoints import Checkpoints
    from noetl.server.cache.collected import Collected
    from noetl.server.cache.step_times import StepTimesCache
    from noetl.server.cache.tracks import Tracks
    from noetl.server.feeds.reader import Reader

    caches = {"checkpoints": Checkpoints(store), "step_times": StepTimesCache(store), "collected": Collected(store)}
    return {"reader": Reader(store), "tracks": Tracks(store, control.plan), **caches}


def _sources(
    settings: Settings, server: ServerSettings, credential: StoredCredentials, side: SideProcesses, clock: Clock
) -> OpenSource:
    from noetl.wiring.triggers import Sources

    parts = (credential, egress_rules(settings), settings.subscription_folders, side, clock)
    return Sources(*parts, check_s=server.check_s, most_bytes=server.http.delivery_bytes)


async def _open_vault(settings: Settings, key: str, team: Team, now: int) -> Vault | None:
    """Return the vault of a server, with every data key that it can unwrap."""
    vault = credential_vault(settings, key)
    if vault is not None:
        await vault.prepare(team, now)
    return vault


def _limits(server: ServerSettings) -> dict[str, Any]:
    """Return the quotas and bounds of a server, and where people reach it."""
    from noetl.server.auth.quota import Quota

    bounds = server.http
    return {
        "bounds": _bounds(server),
        "public_url": server.public_url,
        "streams": Quota(bounds.streams, bounds.token_streams, "event streams"),
        "answers": Quota(bounds.answer_bytes, bounds.answer_bytes // 2, "large answers"),
    }


def _jobs(
    settings: Settings, store: Store, services: Services, exported: ExportCounts
) -> tuple[ResultGC, Scheduler, EndedTriggers, Notifications, SubscriptionPoller, list[LogExport], Pruning]:
    from noetl.wiring.triggers import open_ended_triggers, open_notifications, open_poller, open_scheduler

    parts = (services, open_derived(store))
    triggers = (open_scheduler(*parts), open_ended_triggers(*parts), open_notifications(*parts), open_poller(*parts))
    exports = _exports(settings, store, services, exported)
    return open_collector(settings, store), *triggers, exports, _pruning(settings, store)


def _pruning(settings: Settings, store: Store) -> Pruning:
    from noetl.server.background.pruning import Pruning, Retention

    kept = Retention(settings.dlq_days, settings.execution_days)
    return Pruning(store, open_derived(store), store.clock, kept, holder=uuid4().hex)


def _exports(settings: Settings, store: Store, services: Services, counts: ExportCounts) -> list[LogExport]:
    from noetl.observe.export.targets import export_targets
    from noetl.server.background.log_export import LogExport

    parts = (store, services.triggers, open_derived(store), services.clock, services.mask.event_json, counts)
    return [LogExport(target, *parts, holder=uuid4().hex) for target in export_targets(settings.export)]


async def _access(
    store: Store, team: Team, settings: Settings, server: ServerSettings, own_token: str
) -> tuple[dict[str, Any], bool]:
    """Return how callers are known, and whether the server has several users."""
    from noetl.server.auth.gate import Gate
    from noetl.server.auth.people.sessions import Sessions

    people, clock = open_people(store), store.clock
    has_tokens, required = await _needs(team, people, clock.now(), settings, server)
    sessions = Sessions(people, clock, server.session_s)
    gate = Gate(team, clock, required=required, local=own_token, sessions=sessions)
    found = {"people": people, "sessions": sessions, "oidc": _provider(server, clock), "gate": gate}
    return found, required and (has_tokens or not own_token)


def _provider(server: ServerSettings, clock: Clock) -> OpenIdConnect | None:
    """Return the OpenID Connect provider of the settings. Raises InvalidInput."""
    if server.oidc is None:
        return None
    from noetl.server.auth.people.oidc import OpenIdConnect

    return OpenIdConnect(server.oidc, clock)


async def _needs(team: Team, people: People, now: int, settings: Settings, server: ServerSettings) -> tuple[bool, bool]:
    """Return whether the store has tokens or users, and whether one is required."""
    from noetl.server.auth.gate import needs_token

    live = (token for token in await team.tokens() if token.revoked_at is None)
    has_tokens = any(token.expires_at is None or token.expires_at > now for token in live)
    has_tokens = has_tokens or any(not user.disabled for user in await people.users())
    option = store_option(variables(), settings)
    return has_tokens, needs_token(server.auth, server.host, has_tokens=has_tokens, option=option)


def _bounds(server: ServerSettings) -> Bounds:
    from noetl.server.auth.gate import is_loopback
    from noetl.server.services import Bounds

    names = ("localhost", "127.0.0.1", "::1", server.host) if is_loopback(server.host) else ()
    return Bounds((*names, *server.hosts), server.origins, http=server.http, check_s=server.check_s)


def _confinement(settings: Settings) -> dict[str, Any]:
    """Return the limits of task processes."""
    from noetl.worker.processes.bounds import Bounds

    processes, files, disk_mb, cpu_s = settings.task_limits
    return {
        "bounds": Bounds(settings.task_memory_mb << 20, processes, files, disk_mb << 20, cpu_s),
        "sandbox": settings.sandbox,
        "hidden": _hidden(settings),
        "writable": _writable(settings),
        "has_network": settings.task_network is not False,
    }


def _hidden(settings: Settings) -> list[str]:
    """Return what a sandbox keeps from tasks: store, key file, configuration, tokens."""
    from noetl.client.local_server import token_folder

    store = settings.store
    own = [store.with_name(store.name + ending) for ending in ("", "-wal", "-shm", "-journal")]
    found = [*own, settings.blobs, settings.locks, key_file(settings), token_folder(), *settings.hidden]
    return [os.path.abspath(str(path)) for path in found]


def _writable(settings: Settings) -> list[str]:
    """Return the folders that tasks in a sandbox may write to. Raises InvalidInput."""
    found = [os.path.abspath(path) for path in settings.sandbox_write]
    missing = [path for path in found if not os.path.isdir(path)]
    if missing and settings.sandbox != "none":
        raise InvalidInput(f"{SANDBOX_WRITE} names {missing[0]}, which is no folder. Create it, or remove it there.")
    return found


def _walls(settings: Settings, scratch: str) -> Walls:
    """Return the limits of tasks that run inside the worker."""
    from noetl.worker.processes.walls import Walls

    return Walls(
        settings.sandbox,
        _hidden(settings),
        _writable(settings),
        scratch,
        memory=settings.task_memory_mb << 20,
        disk=settings.task_limits[2] << 20,
        has_network=egress_rules(settings) is None,
    )


def egress_rules(settings: Settings) -> Egress | None:
    """Return the egress rules of tasks, or None if all hosts are allowed."""
    if not settings.egress_allow and not settings.egress_deny and settings.egress_private is not False:
        return None
    from noetl.worker.http.egress import Egress

    private = settings.egress_private is not False
    return Egress(settings.egress_allow, settings.egress_deny, private, settings.egress_near)


def _with_outbox(settings: Settings) -> Settings:
    """Return the settings, with the host of the operator's own outbox URL allowed."""
    from urllib.parse import urlsplit

    from msgspec.structs import replace as with_fields

    host = urlsplit(settings.outbox.url).hostname
    return with_fields(settings, egress_near=(*settings.egress_near, host)) if host else settings


def confined(settings: Settings, *, several_users: bool) -> Settings:
    """Return the settings with what is not set decided by who uses the server.

    Tasks of several users get the strongest sandbox of this machine, and no private addresses.
    """
    from msgspec.structs import replace as with_fields

    from noetl.worker.processes import network
    from noetl.worker.processes.sandbox import strongest

    sandbox, private, tasks = settings.sandbox, settings.egress_private, settings.task_network
    if sandbox == "auto":
        sandbox = strongest() if several_users else "none"
        if several_users and sandbox == "none":
            _log.warning("This machine has no sandbox for tasks: they can do what the worker's user can do.")
    if private is None:
        private = not several_users
    if tasks is None:
        tasks = not several_users or network.problem() is not None
    return with_fields(settings, sandbox=sandbox, egress_private=private, task_network=tasks)
