"""Outbox in memory. Tested in tests/conformance/test_outbox.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.audit.chain import with_references
from noetl.ports.outbox import OutboxMessage
from noetl.ports.team import Audit
from noetl.stores.memory.tables import Tables

_replace = msgspec.structs.replace


class MemoryOutbox:
    """Messages to other systems, in the tables of a store."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows = tables.outbox

    async def put(self, message: OutboxMessage, now: int) -> int:
        for number, known in self._rows.items():
            if known.key == message.key:
                return number
        self._tables.outbox_number += 1
        number = self._tables.outbox_number
        payload = msgspec.json.decode(msgspec.json.encode(message.payload))
        self._rows[number] = _replace(message, number=number, created_at=now, payload=payload)
        return number

    async def claim(self, now: int, until: int, most: int) -> list[OutboxMessage]:
        due = [row for row in self._rows.values() if row.state == "pending" and row.available_at <= now]
        due.sort(key=lambda row: (row.available_at, row.number))
        taken = sorted(due[:most], key=lambda row: row.number)
        return [self._set(row, attempts=row.attempts + 1, available_at=until) for row in taken]

    async def delivered(self, number: int, attempt: int, now: int) -> bool:
        return self._attempt(number, attempt, state="delivered", delivered_at=now, error="")

    async def failed(self, number: int, attempt: int, error: str, again_at: int | None) -> bool:
        if again_at is None:
            return self._attempt(number, attempt, state="dead", error=error)
        return self._attempt(number, attempt, available_at=again_at, error=error)

    async def message(self, number: int) -> OutboxMessage | None:
        return self._rows.get(number)

    async def messages(self, state: str | None, before: int | None, limit: int) -> list[OutboxMessage]:
        rows = [row for row in reversed(self._rows.values()) if state is None or row.state == state]
        return [row for row in rows if before is None or row.number < before][:limit]

    async def again(self, number: int, now: int, act: Audit = None) -> bool:
        return self._change_open(number, act, state="pending", attempts=0, available_at=now)

    async def discard(self, number: int, reason: str, act: Audit = None) -> bool:
        return self._change_open(number, act, state="discarded", error=reason)

    async def waiting(self) -> Mapping[str, int]:
        pending = [row.available_at for row in self._rows.values() if row.state == "pending"]
        dead = sum(row.state == "dead" for row in self._rows.values())
        return {"pending": len(pending), "dead": dead, "next_at": min(pending, default=0)}

    async def forget(self, before: int) -> int:
        ended = [row for row in self._rows.values() if row.state in ("delivered", "discarded")]
        old = [row.number for row in ended if (row.delivered_at or row.created_at) < before]
        for number in old:
            del self._rows[number]
        return len(old)

    def _set(self, row: OutboxMessage, **changes: Any) -> OutboxMessage:
        made = self._rows[row.number] = _replace(row, **changes)
        return made

    def _attempt(self, number: int, attempt: int, **changes: Any) -> bool:
        row = self._rows.get(number)
        if row is None or row.state != "pending" or row.attempts != attempt:
            return False
        self._set(row, **changes)
        return True

    def _change_open(self, number: int, act: Audit, **changes: Any) -> bool:
        row = self._rows.get(number)
        if row is None or row.state not in ("pending", "dead"):
            return False
        self._tables.note([with_references(act, row.state, changes["state"])])
        self._set(row, **changes)
        return True
