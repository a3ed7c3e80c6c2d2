"""The stores that the control plane is tried on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from noetl.server.control_plane import LocalControlPlane, Store
from noetl.stores.memory.store import MemoryStore
from noetl.stores.sqlite.store import SqliteStore
from tests.unit.server.system import RealClock


@pytest_asyncio.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "noetl.db")
    yield store
    await store.close()


@pytest_asyncio.fixture
async def control(store: Store) -> AsyncIterator[LocalControlPlane]:
    async with LocalControlPlane(store, RealClock()) as control:
        yield control
