"""Selects a store's upkeep. Tested in tests/conformance/test_upkeep.py."""

from __future__ import annotations

from noetl.model.errors import InvalidInput
from noetl.ports import EventLog, Upkeep
from noetl.stores.sqlite.store import SqliteStore


def upkeep_of(store: EventLog) -> Upkeep:
    """Return the maintenance adapter of a store; imports no unused driver."""
    if isinstance(store, SqliteStore):
        from noetl.stores.sqlite.upkeep import SqliteUpkeep

        return SqliteUpkeep(store)
    from noetl.stores.postgres.store import PostgresStore
    from noetl.stores.postgres.upkeep import PostgresUpkeep

    if isinstance(store, PostgresStore):
        return PostgresUpkeep(store)
    raise InvalidInput("this store has no tables to rebuild")
