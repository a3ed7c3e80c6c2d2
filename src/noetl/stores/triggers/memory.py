"""Triggers in memory. Tested in tests/conformance/test_triggers.py."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from noetl.ports.team import Audit
from noetl.ports.triggers import StoredTrigger
from noetl.stores.memory.tables import Tables

_replace = msgspec.structs.replace


class MemoryTriggers:
    """Triggers in the tables of a store."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows = tables.triggers
        self._positions = tables.positions

    async def add(self, trigger: StoredTrigger, act: Audit = None) -> bool:
        key = (trigger.kind, trigger.trigger_id)
        if key in self._rows:
            return False
        self._rows[key] = _replace(trigger, revision=1)
        self._tables.note([act])
        return True

    async def save(self, trigger: StoredTrigger, act: Audit = None) -> bool:
        key = (trigger.kind, trigger.trigger_id)
        known = self._rows.get(key)
        if known is None or known.revision != trigger.revision:
            return False
        self._rows[key] = _replace(trigger, revision=known.revision + 1)
        self._tables.note([act])
        return True

    async def remove(self, kind: str, trigger_id: str, act: Audit = None) -> bool:
        if self._rows.pop((kind, trigger_id), None) is None:
            return False
        self._tables.note([act])
        return True

    async def trigger(self, kind: str, trigger_id: str) -> StoredTrigger | None:
        return self._rows.get((kind, trigger_id))

    async def triggers(
        self,
        kind: str,
        *,
        path: str | None = None,
        owner: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[StoredTrigger]:
        found = [
            one
            for key, one in sorted(self._rows.items())
            if key[0] == kind
            and path in (None, one.path)
            and owner in (None, one.owner)
            and (after is None or key[1] > after)
        ]
        return found[:limit]

    async def position(self, name: str) -> tuple[dict[str, int], int]:
        return self._positions.get(name, ({}, 0))

    async def advance(self, name: str, position: Mapping[str, int], revision: int) -> bool:
        if (await self.position(name))[1] != revision:
            return False
        self._positions[name] = (dict(position), revision + 1)
        return True
