"""The store of a simulated world, in memory or SQLite, with queries and losses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from noetl.model.events import Event
from noetl.ports import DerivedTables
from noetl.server.background.rebuild import Rebuild
from noetl.server.cache.plan_cache import PlanCache
from noetl.stores.memory.derived import MemoryDerived
from noetl.stores.memory.store import MemoryStore
from noetl.stores.memory.tables import Tables
from noetl.stores.sqlite.derived import SqliteDerived
from noetl.stores.sqlite.store import SqliteStore
from tests.simulation.faults import FailingMemory, FailingSqlite, Watch, Weather
from tests.watched import WatchedStore

_ALL = 1_000_000
Failing = FailingMemory | FailingSqlite


class Ground:
    """Lasts while servers come and go."""

    def __init__(
        self,
        store: MemoryStore | SqliteStore,
        derived: DerivedTables,
        opened: Callable[[Weather, Watch], Failing],
        defaults: dict[str, Any],
    ) -> None:
        self.store = store  # never fails
        self.derived = derived
        self._opened = opened
        self._served: Failing | None = None
        self._rebuild = Rebuild(store, derived, PlanCache(store, defaults))

    def serve(self, weather: Weather, watch: Watch) -> Failing:
        """Open a store for another server."""
        self._served = self._opened(weather, watch)
        return self._served

    async def left(self) -> None:
        """Close the store of a server that is gone."""
        if self._served is not None:
            await self._served.close()
            self._served = None

    async def lose(self) -> None:
        """Drop and rebuild every projection while no server runs."""
        await self._rebuild.rebuild()

    async def differences(self) -> list[str]:
        """List the differences between projections and the log."""
        return await self._rebuild.check()

    async def logs(self) -> dict[str, list[Event]]:
        return {found: await self.store.read(found) for _, found in await self.derived.logged(0, _ALL)}

    async def close(self) -> None:
        await self.left()
        await self.store.close()


def in_memory(defaults: dict[str, Any]) -> Ground:
    """Stand on tables in memory."""
    tables = Tables()
    store = MemoryStore(tables)
    return Ground(store, MemoryDerived(store), lambda weather, watch: FailingMemory(tables, weather, watch), defaults)


def in_file(folder: Path, defaults: dict[str, Any]) -> Ground:
    """Stand on a SQLite file."""
    path = folder / "noetl.db"
    store = WatchedStore(path)
    return Ground(store, SqliteDerived(store), lambda weather, watch: FailingSqlite(path, weather, watch), defaults)
