"""Store that simulates a crash. Tested in tests/unit/testing/test_sagas.py."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from noetl.model.errors import StoreUnavailable
from noetl.ports import Claim, Commit, Receipt
from noetl.stores.memory.store import MemoryStore
from noetl.stores.memory.tables import Tables


class CrashingStore(MemoryStore):
    """Counts commits, and fails from commit `dies_at` on."""

    def __init__(self, tables: Tables | None = None, dies_at: int | None = None) -> None:
        super().__init__(tables)
        self.writes = 0
        self.died = asyncio.Event()
        self._dies_at = dies_at

    @property
    def is_mortal(self) -> bool:
        return self._dies_at is not None

    def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt | Awaitable[Receipt]:
        if any(commit.events for commit in commits):
            if self._dies_at is not None and self.writes >= self._dies_at:
                self.died.set()
            else:
                self.writes += 1
        if self.died.is_set():
            raise StoreUnavailable("the process has died")
        return super().commit(commits, claims)
