"""Composition root of triggers: their tables, their background tasks, and sources.

Tested in tests/server/api/triggers/test_schedules.py, test_webhooks.py, test_notifications.py and test_subscriptions.py.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from noetl.engine.tasks.actions import RunTask
from noetl.engine.tasks.run_info import RunInfo
from noetl.model.errors import CredentialUnavailable, InvalidInput, SourceUnavailable
from noetl.ports import AuditTrail, Clock, DerivedTables
from noetl.ports.schedules import Schedules
from noetl.ports.triggers import Source, Subscriptions, Triggers
from noetl.ports.work import run_tool
from noetl.server.background.reactions.ended_triggers import EndedTriggers
from noetl.server.background.reactions.notifications import Notifications
from noetl.server.background.schedules import Scheduler
from noetl.server.background.subscriptions.poller import SubscriptionPoller
from noetl.server.processes.render_apart import render_apart, render_each_apart
from noetl.server.processes.side import SideProcesses
from noetl.server.services import Services
from noetl.tools import kinds
from noetl.triggers.subscription import SubscriptionSpec
from noetl.worker.http.clients import HttpClient
from noetl.worker.tool_context import DetachedRun, TaskContext, WorkerResources

if TYPE_CHECKING:
    from noetl.worker.http.egress import Egress

_CONNECT_S = 10
Credential = Callable[[str], Awaitable[Mapping[str, Any]]]


def open_schedules(store: object) -> Schedules:
    """Return the schedules of a store."""
    from noetl.stores.postgres.store import PostgresStore
    from noetl.stores.schedules.postgres import PostgresSchedules
    from noetl.stores.schedules.sqlite import SqliteSchedules
    from noetl.stores.sqlite.store import SqliteStore

    if isinstance(store, PostgresStore):
        return PostgresSchedules(store.database)
    if isinstance(store, SqliteStore):
        return SqliteSchedules(store.database)
    raise InvalidInput("This store has no schedules.")


def open_triggers(store: object) -> Triggers:
    """Return the other triggers of a store."""
    from noetl.stores.postgres.store import PostgresStore
    from noetl.stores.sqlite.store import SqliteStore
    from noetl.stores.triggers.sql import SqlTriggers

    if isinstance(store, PostgresStore | SqliteStore):
        return SqlTriggers(store.database)
    raise InvalidInput("This store has no triggers.")


def open_subscriptions(store: object) -> Subscriptions:
    """Return the progress of a store's subscriptions."""
    from noetl.stores.postgres.store import PostgresStore
    from noetl.stores.sqlite.store import SqliteStore
    from noetl.stores.subscriptions.postgres import PostgresSubscriptions
    from noetl.stores.subscriptions.sqlite import SqliteSubscriptions

    if isinstance(store, PostgresStore):
        return PostgresSubscriptions(store.database)
    if isinstance(store, SqliteStore):
        return SqliteSubscriptions(store.database)
    raise InvalidInput("This store has no subscriptions.")


def trigger_parts(store: object, team: AuditTrail, clock: Clock) -> dict[str, Any]:
    """Return what services have about triggers."""
    from noetl.server.operations.refused_deliveries import RefusedDeliveries

    return {
        "schedules": open_schedules(store),
        "triggers": open_triggers(store),
        "subscriptions": open_subscriptions(store),
        "refused": RefusedDeliveries(team, clock),
    }


def open_scheduler(services: Services, duties: DerivedTables) -> Scheduler:
    """Return the scheduler of a server; the caller runs it."""
    parts = (services.schedules, services.store, duties, services.control.submit, services.clock)
    return Scheduler(*parts, holder=uuid4().hex, counts=services.control.counts)


def open_ended_triggers(services: Services, duties: DerivedTables) -> EndedTriggers:
    """Return what starts playbooks after ends of executions; the caller runs it."""

    async def render(data: Any, scope: Mapping[str, Any]) -> Any:
        return await render_apart(services.side, data, scope, services.clock.now(), services.bounds.check_s)

    parts = (services.triggers, services.store, services.team, duties, services.control.submit, render, services.clock)
    return EndedTriggers(*parts, holder=uuid4().hex, counts=services.control.counts)


def open_notifications(services: Services, duties: DerivedTables) -> Notifications:
    """Return what puts messages of notifications in the outbox; the caller runs it."""
    parts = (services.triggers, services.store, services.outbox, duties, services.control.plan, services.clock)
    return Notifications(*parts, holder=uuid4().hex, base=services.public_url, mask=services.mask.data)


def open_poller(services: Services, duties: DerivedTables) -> SubscriptionPoller:
    """Return what polls subscriptions; the caller runs it."""
    parts = (services.triggers, services.subscriptions, services.store, duties, services.control.submit)
    most = services.bounds.http.delivery_bytes
    render = partial(_render, services.side, services.clock, services.bounds.check_s)
    return SubscriptionPoller(*parts, services.open_source, render, services.clock, holder=uuid4().hex, most_bytes=most)


async def _render(side: SideProcesses, clock: Clock, seconds: float, data: Any, scope: Mapping[str, Any]) -> Any:
    return await render_apart(side, data, scope, clock.now(), seconds)


class Sources:
    """Opens sources of subscriptions, within the egress rules of tasks."""

    def __init__(
        self,
        credential: Credential,
        egress: Egress | None,
        folders: Sequence[str],
        side: SideProcesses,
        clock: Clock,
        *,
        check_s: float,
        most_bytes: int,
    ) -> None:
        self._credential = credential
        self._egress = egress
        self._folders = folders
        self._side = side
        self._clock = clock
        self._check_s = check_s
        self._most_bytes = most_bytes

    async def __call__(self, spec: SubscriptionSpec) -> Source:
        """Return the source of a subscription; it connects when it is polled."""
        if spec.source == "folder":
            from noetl.sources.folder import FolderSource

            return FolderSource(spec, self._folders, self._most_bytes)
        if spec.source == "http":
            from noetl.sources.web import HttpSource

            render = partial(_render, self._side, self._clock, self._check_s)
            return HttpSource(spec, partial(self._get, spec), render, self._render_each)
        from noetl.sources.postgres import ListenSource, TableSource

        connect = partial(self._connect, spec.auth)
        return ListenSource(spec, connect) if spec.source == "listen" else TableSource(spec, connect)

    async def addresses(self, host: str, port: int) -> list[str] | None:
        """Return the addresses that the egress rules allow; None: all."""
        return None if self._egress is None else [str(one) for one in await self._egress.addresses(host, port)]

    async def _render_each(self, data: Any, scopes: Sequence[Mapping[str, Any]]) -> list[Any]:
        return await render_each_apart(self._side, data, scopes, self._clock.now(), self._check_s)

    async def _connect(self, name: str) -> Any:
        """Return a connection to PostgreSQL. Raises SourceUnavailable."""
        from noetl.tools.sql.connections import pg_connect
        from noetl.worker.secrets.redact import Secrets

        try:
            data = await self._credential(name)
        except KeyError:
            fix = f"Store it with `noetl credential put {name}`."
            raise CredentialUnavailable(f"There is no credential `{name}`. {fix}") from None
        secrets = Secrets()
        secrets.learn(name, data)
        try:
            return await pg_connect(data, self, _CONNECT_S)
        except (OSError, ValueError) as error:
            text = secrets.text(str(error))
            raise SourceUnavailable(f"Cannot connect with the credential `{name}`: {text}") from None

    async def _get(self, spec: SubscriptionSpec, params: Mapping[str, Any]) -> Any:
        """Return the parsed body of a response. Raises SourceUnavailable."""
        client, unused, known = HttpClient(self._egress), cast(Any, None), kinds()
        shared = WorkerResources(
            unused, known, known, self._clock, unused, unused, client.get, self._credential,
            folder=os.getcwd(), egress=self._egress,
        )  # fmt: skip
        task = RunTask("subscription", "http", {}, {}, {}, 1, uuid4().hex, spec.auth or None)
        context = TaskContext(DetachedRun(shared, RunInfo("0", "subscription")), task)
        context.know(task.auth)
        run = known.runner("http")
        assert run is not None
        try:
            outcome = shared.secrets.outcome(await run_tool(run, {"url": spec.url, "params": dict(params)}, context))
        finally:
            await shared.shared.close()
            await client.close()
        if outcome.error is not None:
            raise SourceUnavailable(f"{spec.url}: {outcome.error.message}")
        return outcome.result["data"]
