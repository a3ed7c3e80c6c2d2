"""Notifications and new rows of PostgreSQL.

A notification that is sent while no server listens is lost: PostgreSQL does not keep it. A table keeps its rows, so a
subscription to a table loses none, and notifications of a channel can wake it.

Keys are given out before their transactions commit, so a row can appear after one with a larger key. A row is therefore
offered only when every transaction that was writing to the table when it was first seen has ended. Tested in
tests/unit/sources/test_postgres.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

from noetl.model.errors import SourceUnavailable
from noetl.ports.triggers import Known, Message, Page
from noetl.sources.folder import parse
from noetl.triggers.subscription import SubscriptionSpec, message_key

_MOST_WAITING: Final = 10_000  # notifications in memory
_MOST_LAG: Final = 10_000  # rows that are counted
_WRITERS: Final = """
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND granted AND pid IS DISTINCT FROM pg_backend_pid()
  AND (relation = to_regclass(%s) OR relation IN (SELECT relid FROM pg_partition_tree(to_regclass(%s))))
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
"""
Connect = Callable[[], Awaitable[Any]]  # a connection of psycopg with autocommit; raises SourceUnavailable


class Listener:
    """Connection that listens to a channel, opened when it is needed."""

    def __init__(self, connect: Connect, channel: str) -> None:
        self._connect = connect
        self._channel = channel
        self._connection: Any = None
        self._payloads: list[str] = []
        self._lost = 0

    async def take(self) -> list[str]:
        """Return the payloads that have arrived. Raises SourceUnavailable."""
        async with _errors():
            if self._connection is None:
                await self._open()
            await self._connection.execute("SELECT 1")  # reads what has arrived, and shows a lost connection
        found, self._payloads = self._payloads, []
        if self._lost:
            self._lost = 0
            raise SourceUnavailable(f"More than {_MOST_WAITING:,} notifications arrived at once; some were lost.")
        return found

    async def _open(self) -> None:
        from psycopg import sql

        self._connection = await self._connect()
        self._connection.add_notify_handler(lambda notify: self._add(notify.payload))
        await self._connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))

    def _add(self, payload: str) -> None:
        if len(self._payloads) < _MOST_WAITING:
            self._payloads.append(payload)
        else:
            self._lost += 1

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None


class ListenSource:
    """Notifications of a channel, as they arrive."""

    is_ordered = True

    def __init__(self, spec: SubscriptionSpec, connect: Connect) -> None:
        self._spec = spec
        self._listener = Listener(connect, spec.channel)
        self._waiting: list[Message] = []

    async def poll(self, position: Mapping[str, Any], most: int, known: Known) -> Page:  # noqa: ARG002
        self._waiting += [self._message(payload) for payload in await self._listener.take()]
        found = tuple(self._waiting[:most])
        lag = len(self._waiting) - len(found)
        return Page(found, position, lag, lag > 0)

    async def ack(self, messages: Sequence[Message]) -> None:
        done = {message.message_id for message in messages}
        self._waiting = [message for message in self._waiting if message.message_id not in done]

    async def is_woken(self) -> bool:
        return True  # a look costs no more than the question

    async def close(self) -> None:
        await self._listener.close()

    def _message(self, payload: str) -> Message:
        data, problem = parse(payload.encode(), self._spec.format)
        data = payload if problem else data
        return Message(uuid4().hex, data, {"channel": self._spec.channel}, problem=problem)


class TableSource:
    """Rows of a table in the order of a key that grows."""

    is_ordered = True

    def __init__(self, spec: SubscriptionSpec, connect: Connect) -> None:
        self._spec = spec
        self._connect = connect
        self._connection: Any = None
        self._listener = Listener(connect, spec.channel) if spec.channel else None
        self._woken = False
        self._held: tuple[str, frozenset[str]] | None = None  # last key, and who wrote when it was seen

    async def poll(self, position: Mapping[str, Any], most: int, known: Known) -> Page:  # noqa: ARG002
        if self._listener is not None:
            await self._listener.take()  # it listens before rows are read, so each later one wakes it
        async with _errors():
            if self._connection is None:
                self._connection = await self._connect()
            self._woken = False
            if "key" not in position and self._spec.begin == "now":
                return Page((), {"key": await self._last()})
            return await self._next(position, most)

    async def ack(self, messages: Sequence[Message]) -> None: ...

    async def is_woken(self) -> bool:
        if self._listener is not None and await self._listener.take():
            self._woken = True
        return self._woken or self._held is not None

    async def close(self) -> None:
        if self._listener is not None:
            await self._listener.close()
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _last(self) -> str | None:
        [row] = await self._rows("SELECT max({key})::text FROM {table}")
        return None if row[0] is None else str(row[0])

    async def _next(self, position: Mapping[str, Any], most: int) -> Page:
        after = position.get("key")
        until = await self._settled(after)
        if until is None:
            return Page((), position, await self._count(after))
        condition, values = self._condition(after)
        rows = await self._rows(
            "SELECT noetl_row.{key}::text, row_to_json(noetl_row)::text FROM {table} AS noetl_row"
            f" WHERE {condition} AND noetl_row.{{key}} <= %s ORDER BY noetl_row.{{key}} LIMIT %s",
            *values, until, most,
        )  # fmt: skip
        messages = tuple(self._message(key, row) for key, row in rows)
        last = messages[-1].position if messages else position
        assert last is not None
        lag = await self._count(last["key"])
        return Page(messages, last, lag, len(messages) == most)

    def _message(self, key: str, row: str) -> Message:
        data, problem = parse(row.encode(), "json")
        return Message(message_key(key), data, {"table": self._spec.table}, {"key": key}, problem)

    async def _settled(self, after: str | None) -> str | None:
        """Return a key up to which no row can appear any more; None: wait."""
        writers = await self._writers()
        if self._held is not None and not writers & self._held[1]:
            until, self._held = self._held[0], None
            return until
        if self._held is not None:
            return None
        condition, values = self._condition(after)
        rows = await self._rows(
            f"SELECT noetl_row.{{key}}::text FROM {{table}} AS noetl_row WHERE {condition} ORDER BY noetl_row.{{key}} DESC LIMIT 1",
            *values,
        )
        if not rows:
            return None
        writers = await self._writers()
        if writers:
            self._held = (rows[0][0], writers)
            return None
        return str(rows[0][0])

    async def _writers(self) -> frozenset[str]:
        """Return the transactions that may have written to the table."""
        name = ".".join(f'"{part}"' for part in self._spec.table.split("."))
        return frozenset([row[0] for row in await self._rows(_WRITERS, name, name)])

    async def _count(self, after: str | None) -> int:
        condition, values = self._condition(after)
        [row] = await self._rows(
            f"SELECT count(*) FROM (SELECT 1 FROM {{table}} AS noetl_row WHERE {condition} LIMIT {_MOST_LAG}) AS x",
            *values,
        )
        return int(row[0])

    def _condition(self, after: str | None) -> tuple[str, list[str]]:
        return ("noetl_row.{key} IS NOT NULL", []) if after is None else ("noetl_row.{key} > %s", [after])

    async def _rows(self, text: str, *values: Any) -> list[Any]:
        from psycopg import sql

        names = {"key": sql.Identifier(self._spec.key), "table": sql.Identifier(*self._spec.table.split("."))}
        cursor = await self._connection.execute(sql.SQL(text).format(**names), values)
        return list(await cursor.fetchall())


@asynccontextmanager
async def _errors() -> AsyncIterator[None]:
    """Raise errors of the database as SourceUnavailable."""
    import psycopg

    try:
        yield
    except (psycopg.Error, OSError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise SourceUnavailable(f"PostgreSQL: {text}") from None
