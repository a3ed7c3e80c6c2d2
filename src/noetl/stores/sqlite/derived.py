"""Derived tables of a SQLite store: read, delete and insert their rows.

`engine/queries/projections.py` computes them. Tested in tests/conformance/test_derived_tables.py and
tests/unit/server/background/test_rebuild.py.
"""

from __future__ import annotations

import sqlite3
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
from noetl.stores.sqlite.commit import write_changes
from noetl.stores.sqlite.queue import Epochs, hand_out
from noetl.stores.sqlite.rows import projection_of
from noetl.stores.sqlite.store import SqliteStore

_SQL = queries("sqlite")
_EMPTIED = ("empty_executions", "empty_queue", "empty_timers", "empty_messages", "empty_snapshots", "empty_letters")
_BESIDE = ("find_execution", "work_of", "timers_of", "messages_of")
_message = msgspec.json.Decoder(AnyMessage)
_work = msgspec.json.Decoder(WorkItem)


class SqliteDerived:
    """Derived tables of a SQLite store."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def logged(self, after: int, most: int) -> list[tuple[int, str]]:
        return [(row[0], row[1]) for row in await self._rows("list_logs", after, most)]

    async def rows(self, execution_id: str) -> DerivedRows:
        def job(connection: sqlite3.Connection) -> list[list[Any]]:
            connection.execute("BEGIN")  # one snapshot for all tables
            try:
                return [connection.execute(_SQL[name], (execution_id,)).fetchall() for name in _BESIDE]
            finally:
                connection.execute("ROLLBACK")

        rows, work, timers, messages = await self._store.database.run(job)
        row = projection_of(rows[0]) if rows else {"last_seq": 0}
        last_seq = row.pop("last_seq")
        row.pop("execution_id", None)
        found = [(since, _work.decode(text), status) for since, text, status in work]
        return DerivedRows(
            execution_id,
            last_seq,
            row,
            tuple((since, item) for since, item, _ in found),
            tuple((name, at) for name, at in timers),
            tuple((to, _message.decode(text)) for to, text in messages),
            tuple(item.work_id for _, item, status in found if status == "dead"),
        )

    async def letters_of(self, execution_id: str) -> list[DeadLetter]:
        return by_id(await self._store.letters(LetterSelection(execution_id=execution_id, limit=ALL)))

    async def open(self, after: int, before: int, most: int) -> list[Open]:
        return [
            Open(number, name, bool(bare)) for number, name, bare in await self._rows("list_open", after, before, most)
        ]

    async def on_duty(self, name: str, holder: str, now: int, until: int) -> bool:
        def job(connection: sqlite3.Connection) -> bool:
            return connection.execute(_SQL["take_duty"], (name, holder, now, until)).rowcount > 0

        return await self._store.database.write(job)

    async def empty(self, epoch: int) -> None:
        def job(connection: sqlite3.Connection) -> None:
            for name in _EMPTIED:
                connection.execute(_SQL[name])
            connection.execute(_SQL["raise_epoch"], (epoch,))

        await self._store.database.write(job)

    async def skip_epochs(self) -> None:
        await self._store.database.write(lambda connection: connection.execute(_SQL["skip_epochs"], (SKIPPED_EPOCHS,)))

    async def put_rows(self, rows: Sequence[DerivedRows]) -> None:
        def job(connection: sqlite3.Connection) -> None:
            changes = changes_of(rows)
            write_changes(connection, changes)
            hand_out(connection, changes.work, changes.born, (), Epochs())

        await self._store.database.write(job)

    async def _rows(self, name: str, *values: Any) -> list[Any]:
        return await self._store.database.run(lambda connection: connection.execute(_SQL[name], values).fetchall())
