"""Selects the maintenance adapter of a store.

Tested in tests/conformance/test_upkeep.py.
"""

from __future__ import annotations

from noetl.model.errors import InvalidInput
from noetl.ports import EventLog, Upkeep
from noetl.stores.sqlite import SqliteStore


def upkeep_of(store: EventLog) -> Upkeep:
    """Return the maintenance adapter of a store; imports no unused driver."""
    if isinstance(store, SqliteStore):
        from noetl.stores.upkeep_sqlite import SqliteUpkeep

        return SqliteUpkeep(store)
    from noetl.stores.postgres import PostgresStore
    from noetl.stores.upkeep_postgres import PostgresUpkeep

    if isinstance(store, PostgresStore):
        return PostgresUpkeep(store)
    raise InvalidInput("this store has no tables to rebuild")
