"""The stores that the suite runs on; each can be opened again on the same data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

import pytest
import pytest_asyncio

from noetl.ports import (
    AuditTrail,
    Catalog,
    Credentials,
    DerivedTables,
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
from noetl.stores.memory.derived import MemoryDerived
from noetl.stores.memory.outbox import MemoryOutbox
from noetl.stores.memory.store import MemoryStore
from noetl.stores.memory.team import MemoryTeam
from noetl.stores.people.memory import MemoryPeople
from noetl.stores.people.postgres import PostgresPeople
from noetl.stores.people.sqlite import SqlitePeople
from noetl.stores.postgres.derived import PostgresDerived
from noetl.stores.postgres.outbox import PostgresOutbox
from noetl.stores.postgres.store import PostgresStore
from noetl.stores.postgres.team import PostgresTeam
from noetl.stores.schedules.memory import MemorySchedules
from noetl.stores.schedules.postgres import PostgresSchedules
from noetl.stores.schedules.sqlite import SqliteSchedules
from noetl.stores.sqlite.derived import SqliteDerived
from noetl.stores.sqlite.outbox import SqliteOutbox
from noetl.stores.sqlite.store import SqliteStore
from noetl.stores.sqlite.team import SqliteTeam
from noetl.stores.subscriptions.memory import MemorySubscriptions
from noetl.stores.subscriptions.postgres import PostgresSubscriptions
from noetl.stores.subscriptions.sqlite import SqliteSubscriptions
from noetl.stores.triggers.memory import MemoryTriggers
from noetl.stores.triggers.sql import SqlTriggers
from tests.databases import fresh_database


class Store(EventLog, WorkQueue, Catalog, DeadLetters, Protocol):
    """All ports of a store."""


class Team(Runtime, Tokens, Credentials, AccessTokens, IdempotencyKeys, AuditTrail, Protocol):
    """All ports of a server's tables."""


class Place:
    """Shared data of one kind of store: each `open` acts as one more process on it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.path = folder / "noetl.db"
        self._tables: MemoryStore | None = None
        self.address = fresh_database() if kind == "postgres" else ""
        self._opened: list[Store] = []

    def open(self) -> Store:
        store: Store
        if self.kind == "memory":
            self._tables = self._tables or MemoryStore()
            store = MemoryStore(self._tables.tables)
        elif self.kind == "postgres":
            store = PostgresStore(self.address)
        else:
            store = SqliteStore(self.path)
        self._opened.append(store)
        return store

    def team(self, store: Store) -> Team:
        """Return the server's tables of a store."""
        if isinstance(store, MemoryStore):
            return MemoryTeam(store.tables)
        if isinstance(store, PostgresStore):
            return PostgresTeam(store.database)
        assert isinstance(store, SqliteStore)
        return SqliteTeam(store.database)

    def derived(self, store: Store) -> DerivedTables:
        """Return the maintenance adapter of a store."""
        if isinstance(store, MemoryStore):
            return MemoryDerived(store)
        if isinstance(store, PostgresStore):
            return PostgresDerived(store)
        assert isinstance(store, SqliteStore)
        return SqliteDerived(store)

    def outbox(self, store: Store) -> Outbox:
        if isinstance(store, MemoryStore):
            return MemoryOutbox(store.tables)
        if isinstance(store, PostgresStore):
            return PostgresOutbox(store.database)
        assert isinstance(store, SqliteStore)
        return SqliteOutbox(store.database)

    def schedules(self, store: Store) -> Schedules:
        if isinstance(store, MemoryStore):
            return MemorySchedules(store.tables)
        if isinstance(store, PostgresStore):
            return PostgresSchedules(store.database)
        assert isinstance(store, SqliteStore)
        return SqliteSchedules(store.database)

    def triggers(self, store: Store) -> Triggers:
        if isinstance(store, MemoryStore):
            return MemoryTriggers(store.tables)
        assert isinstance(store, PostgresStore | SqliteStore)
        return SqlTriggers(store.database)

    def subscriptions(self, store: Store) -> Subscriptions:
        if isinstance(store, MemoryStore):
            return MemorySubscriptions(store.tables)
        if isinstance(store, PostgresStore):
            return PostgresSubscriptions(store.database)
        assert isinstance(store, SqliteStore)
        return SqliteSubscriptions(store.database)

    def people(self, store: Store) -> People:
        if isinstance(store, MemoryStore):
            return MemoryPeople(store.tables)
        if isinstance(store, PostgresStore):
            return PostgresPeople(store.database)
        assert isinstance(store, SqliteStore)
        return SqlitePeople(store.database)

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


@pytest_asyncio.fixture(params=["memory", "sqlite", "postgres"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(request.param, tmp_path)
    yield place
    await place.close()


@pytest.fixture
def store(place: Place) -> Store:
    return place.open()


@pytest.fixture
def team(place: Place, store: Store) -> Team:
    return place.team(store)


@pytest.fixture
def derived(place: Place, store: Store) -> DerivedTables:
    return place.derived(store)
