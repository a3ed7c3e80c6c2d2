"""Composition root of schedules: their tables, and the scheduler of a server.

Tested in tests/server/api/test_schedules.py.
"""

from __future__ import annotations

from uuid import uuid4

from noetl.model.errors import InvalidInput
from noetl.ports import DerivedTables
from noetl.ports.schedules import Schedules
from noetl.server.background.schedules import Scheduler
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


def open_scheduler(services: Services, duties: DerivedTables) -> Scheduler:
    """Return the scheduler of a server; the caller runs it."""
    parts = (services.schedules, services.store, duties, services.control.submit, services.clock)
    return Scheduler(*parts, holder=uuid4().hex)
