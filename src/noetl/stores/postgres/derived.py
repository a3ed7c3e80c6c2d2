"""Derived tables of a PostgreSQL store: read, delete and insert their rows.

`engine/queries/projections.py` computes them. Executions are in the order of their ids, which begin with the start time.
Tested in tests/conformance/test_derived_tables.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from noetl.model.letters import DeadLetter
from noetl.model.messages import AnyMessage
from noetl.model.work import WorkItem
from noetl.ports import DerivedRows
from noetl.ports.derived import Open
from noetl.ports.letters import LetterSelection
from noetl.stores.common.batch import ALL, SKIPPED_EPOCHS, by_id, changes_of
from noetl.stores.common.queries import queries
from noetl.stores.postgres.commit import put_changes
from noetl.stores.postgres.rows import message_of, number
from noetl.stores.postgres.store import PostgresStore

_SQL = queries("postgres")
_EMPTIED = ("empty_executions", "empty_queue", "empty_timers", "empty_messages", "empty_snapshots", "empty_letters")
_work = msgspec.json.Decoder(WorkItem)


class PostgresDerived:
    """Derived tables of a PostgreSQL store."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def logged(self, after: int, most: int) -> list[tuple[int, str]]:
        return [(row[0], row[1]) for row in await self._store.database.rows("list_logs", after, most)]

    async def rows(self, execution_id: str) -> DerivedRows:
        last_seq, row = 0, dict[str, Any]()
        work: list[tuple[int, WorkItem]] = []
        timers: list[tuple[str, int]] = []
        inbox: list[tuple[str, AnyMessage]] = []
        dead: list[str] = []
        for what, at, name, body, _ in await self._store.database.rows("beside", number(execution_id)):
            if what == "work":
                work.append((at, _work.decode(body)))
                dead += [work[-1][1].work_id] if name == "dead" else []
            elif what == "timer":
                timers.append((name, at))
            elif what == "message":
                inbox.append(message_of((name, body)))
            else:
                last_seq, row = at, msgspec.json.decode(body)
        return DerivedRows(execution_id, last_seq, row, tuple(work), tuple(timers), tuple(inbox), tuple(dead))

    async def letters_of(self, execution_id: str) -> list[DeadLetter]:
        return by_id(await self._store.letters(LetterSelection(execution_id=execution_id, limit=ALL)))

    async def open(self, after: int, before: int, most: int) -> list[Open]:
        return [Open(*row) for row in await self._store.database.rows("list_open", after, before, most)]

    async def on_duty(self, name: str, holder: str, now: int, until: int) -> bool:
        return bool(await self._store.database.rows("take_duty", name, holder, now, until))

    async def empty(self, epoch: int) -> None:
        async with self._store.database.transaction() as connection:
            for name in _EMPTIED:
                await connection.execute(_SQL[name])
            await connection.execute(_SQL["raise_epoch"], epoch)

    async def skip_epochs(self) -> None:
        await self._store.database.rows("skip_epochs", SKIPPED_EPOCHS)

    async def put_rows(self, rows: Sequence[DerivedRows]) -> None:
        await put_changes(self._store.database, await self._store.writer(), changes_of(rows))
