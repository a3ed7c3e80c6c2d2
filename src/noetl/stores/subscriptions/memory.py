"""Progress of subscriptions in memory.

Tested in tests/conformance/test_subscriptions.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from noetl.ports.triggers import Progress
from noetl.stores.memory.tables import Tables


class MemorySubscriptions:
    """Progress of subscriptions in the tables of a store."""

    def __init__(self, tables: Tables) -> None:
        self._progress = tables.progress
        self._taken = tables.taken
        self._triggers = tables.triggers

    async def progress(self, state_id: str) -> Progress:
        return self._progress.get(state_id, Progress())

    async def note(self, state_id: str, status: Mapping[str, Any]) -> None:
        known = await self.progress(state_id)
        self._progress[state_id] = msgspec.structs.replace(known, status=dict(status))

    async def known(self, state_id: str, message_ids: Sequence[str], now: int) -> set[str]:
        taken = self._taken.get(state_id, {})
        found = set(message_ids) & taken.keys()
        taken.update(dict.fromkeys(found, now))
        return found

    async def forget(self, state_id: str, before: int) -> int:
        taken = self._taken.get(state_id, {})
        old = [name for name, seen_at in taken.items() if seen_at < before]
        for name in old:
            del taken[name]
        return len(old)

    async def prune(self) -> int:
        stored = {name for kind, name in self._triggers if kind == "subscription"}
        gone = [name for name in self._progress if name.rpartition("@")[0] not in stored]
        for name in gone:
            del self._progress[name]
            self._taken.pop(name, None)
        return len(gone)
