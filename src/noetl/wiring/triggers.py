"""Composition root of triggers: their tables, and the scheduler of a server.

Tested in tests/server/api/test_schedules.py, test_webhooks.py and test_notifications.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from noetl.model.errors import InvalidInput
from noetl.ports import AuditTrail, Clock, DerivedTables
from noetl.ports.schedules import Schedules
from noetl.ports.triggers import Triggers
from noetl.server.background.reactions.ended_triggers import EndedTriggers
from noetl.server.background.reactions.notifications import Notifications
from noetl.server.background.schedules import Scheduler
from noetl.server.processes.render_apart import render_apart
from noetl.server.services import Services


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
    from noetl.stores.triggers.postgres import PostgresTriggers
    from noetl.stores.triggers.sqlite import SqliteTriggers

    if isinstance(store, PostgresStore):
        return PostgresTriggers(store.database)
    if isinstance(store, SqliteStore):
        return SqliteTriggers(store.database)
    raise InvalidInput("This store has no triggers.")


def trigger_parts(store: object, team: AuditTrail, clock: Clock) -> dict[str, Any]:
    """Return what services have about triggers."""
    from noetl.server.operations.refused_deliveries import RefusedDeliveries

    return {
        "schedules": open_schedules(store),
        "triggers": open_triggers(store),
        "refused": RefusedDeliveries(team, clock),
    }


def open_scheduler(services: Services, duties: DerivedTables) -> Scheduler:
    """Return the scheduler of a server; the caller runs it."""
    parts = (services.schedules, services.store, duties, services.control.submit, services.clock)
    return Scheduler(*parts, holder=uuid4().hex)


def open_ended_triggers(services: Services, duties: DerivedTables) -> EndedTriggers:
    """Return what starts playbooks after ends of executions; the caller runs it."""

    async def render(data: Any, scope: Mapping[str, Any]) -> Any:
        return await render_apart(services.side, data, scope, services.clock.now(), services.bounds.check_s)

    parts = (services.triggers, services.store, services.team, duties, services.control.submit, render, services.clock)
    return EndedTriggers(*parts, holder=uuid4().hex)


def open_notifications(services: Services, duties: DerivedTables) -> Notifications:
    """Return what puts messages of notifications in the outbox; the caller runs it."""
    parts = (services.triggers, services.store, services.outbox, duties, services.control.plan, services.clock)
    return Notifications(*parts, holder=uuid4().hex, base=services.public_url, mask=services.mask.data)
