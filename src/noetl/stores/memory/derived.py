"""Derived tables of the memory store: read, delete and insert their rows.

Tested in tests/conformance/test_derived_tables.py and tests/unit/server/background/test_rebuild.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from noetl.model.letters import DeadLetter
from noetl.model.messages import AnyMessage
from noetl.ports import DerivedRows
from noetl.ports.derived import Open
from noetl.ports.letters import LetterSelection
from noetl.stores.common.batch import ALL, SKIPPED_EPOCHS, by_id, changes_of, slot_columns
from noetl.stores.memory.store import MemoryStore, apply

_OPEN = ("pending", "running", "waiting", "paused")
_message = msgspec.json.Decoder(AnyMessage)


class MemoryDerived:
    """Derived tables of the memory store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._tables = store.tables

    async def logged(self, after: int, most: int) -> list[tuple[int, str]]:
        first = [(seq, name) for seq, (name, index) in self._tables.feed.items() if index == 0 and seq > after]
        return sorted(first)[:most]

    async def rows(self, execution_id: str) -> DerivedRows:
        row = dict(await self._store.execution(execution_id) or {"last_seq": 0})
        last_seq = row.pop("last_seq")
        row.pop("execution_id", None)
        tables = self._tables
        work = sorted(
            (found for found in tables.queue.values() if found.execution_id == execution_id),
            key=lambda found: found.number,
        )
        return DerivedRows(
            execution_id,
            last_seq,
            row,
            tuple((found.created_at, found.lease().work) for found in work),
            tuple(sorted((name, at) for (owner, name), at in tables.timers.items() if owner == execution_id)),
            tuple((to, _message.decode(text)) for to, text in tables.messages.values() if to == execution_id),
            tuple(found.lease().work.work_id for found in work if found.state == "dead"),
        )

    async def letters_of(self, execution_id: str) -> list[DeadLetter]:
        return by_id(await self._store.letters(LetterSelection(execution_id=execution_id, limit=ALL)))

    async def open(self, after: int, before: int, most: int) -> list[Open]:
        tables, found = self._tables, list[Open]()
        busy = {row.execution_id for row in tables.queue.values()} | {owner for owner, _ in tables.timers}
        busy |= {to for to, _ in tables.messages.values()}
        letters = [msgspec.json.decode(text) for text in tables.letters.values()]
        replaying = {letter["execution_id"] for letter in letters if letter.get("status") == "replaying"}
        for number, (name, data) in enumerate(tables.executions.items(), 1):
            row = msgspec.json.decode(data)
            is_open = row["status"] in _OPEN or name in replaying
            if number > after and is_open and row.get("started_at", 0) <= before:
                found.append(
                    Open(
                        number,
                        name,
                        name not in busy and row["status"] not in ("waiting", "paused") and not slot_columns(row)[1],
                    )
                )
        return found[:most]

    async def on_duty(self, name: str, holder: str, now: int, until: int) -> bool:
        other, end = self._tables.duties.get(name, (holder, 0))
        if other != holder and end > now:
            return False
        self._tables.duties[name] = (holder, until)
        return True

    async def empty(self, epoch: int) -> None:
        tables = self._tables
        for table in (
            tables.executions,
            tables.queue,
            tables.timers,
            tables.messages,
            tables.snapshots,
        ):
            table.clear()
        kinds = {name: msgspec.json.decode(text).get("tool_kind") for name, text in tables.letters.items()}
        for name in [name for name, kind in kinds.items() if kind != "subscription"]:  # those are not in the log
            del tables.letters[name]
        tables.epoch = max(tables.epoch, epoch)

    async def skip_epochs(self) -> None:
        self._tables.epoch += SKIPPED_EPOCHS

    async def put_rows(self, rows: Sequence[DerivedRows]) -> None:
        apply(self._tables, changes_of(rows))
