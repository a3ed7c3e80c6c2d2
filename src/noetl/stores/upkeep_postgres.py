"""Takes what follows from the log out of a PostgreSQL database, and puts it in again.

Derives nothing itself: that is `engine.derive`. Executions come in the order of their numbers, which are made of the time of
their start. Tested in tests/conformance/test_upkeep.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from noetl.model.work import WorkItem
from noetl.ports import Beside
from noetl.stores.batch import changes_of
from noetl.stores.postgres import PostgresStore
from noetl.stores.postgres_commit import put_changes
from noetl.stores.postgres_rows import message_of, number
from noetl.stores.queries import queries

_SQL = queries("postgres")
_EMPTIED = ("empty_executions", "empty_queue", "empty_timers", "empty_messages", "empty_snapshots")
_work = msgspec.json.Decoder(WorkItem)


class PostgresUpkeep:
    """The upkeep of a store in a database."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def logged(self, after: int, most: int) -> list[tuple[int, str]]:
        return [(row[0], row[1]) for row in await self._store.database.rows("list_logs", after, most)]

    async def beside(self, execution_id: str) -> Beside:
        row = dict(await self._store.execution(execution_id) or {"last_seq": 0})
        last_seq = row.pop("last_seq")
        row.pop("execution_id", None)
        database, found = self._store.database, number(execution_id)
        return Beside(
            execution_id,
            last_seq,
            row,
            tuple((since, _work.decode(work)) for since, work in await database.rows("work_of", found)),
            tuple((name, at) for name, at in await database.rows("timers_of", found)),
            tuple(message_of(one) for one in await database.rows("messages_of", found)),
        )

    async def empty(self, epoch: int) -> None:
        async with self._store.database.transaction() as connection:
            for name in _EMPTIED:
                await connection.execute(_SQL[name])
            await connection.execute(_SQL["raise_epoch"], epoch)

    async def put_beside(self, rows: Sequence[Beside]) -> None:
        await put_changes(self._store.database, await self._store.writer(), changes_of(rows))
