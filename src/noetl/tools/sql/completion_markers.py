"""Completion markers: commit a task's writes and a marker in one transaction.

The marker is a row under the task's idempotency key that holds its result, in the user's own database. It is written
first, so that a second run of the same work waits for the first; a run that finds a committed marker returns its result
and writes nothing. So work repeated after a crash, a lost response or by a worker that lost its lease takes effect once.
Markers are kept for 30 days. Tested in tests/tools/sql/test_completion_markers.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import sleep
from typing import Any, Final

import msgspec

from noetl.expr.sql.statements import ends_transaction
from noetl.model.outcome import Outcome, failed, ok
from noetl.ports import ToolContext
from noetl.tools.sql.statements import name

TABLE: Final = "noetl_marker"
_KEPT_DAYS: Final = 30
_CLEARED_MS: Final = 3_600_000  # how often a worker deletes old markers
_MOST_REMOVED: Final = 100_000
_MOST_TRIES: Final = 100  # to create the table in DuckDB while other tasks do
_AGAIN_S: Final = 0.02
_REPEATED: Final = "An earlier attempt has committed this work; returning its recorded result without writing."

Work = Callable[[], Awaitable[dict[str, Any]]]


def create_statement(table: str) -> str:
    """Return the statement that creates a table of markers."""
    at = "written_at timestamptz NOT NULL DEFAULT now()"
    return f"CREATE TABLE IF NOT EXISTS {name(table)} (key text PRIMARY KEY, result text, {at})"


def refuse_transaction_control(statements: list[str]) -> Outcome | None:
    """Refuse statements that would end the transaction of the writes and marker."""
    for statement in statements:
        if ends_transaction(statement):
            message = f"a transactional task is one transaction; `{statement[:60]}` would begin or end one, remove it"
            return failed("client_error", message, code="TRANSACTION_CONTROL")
    return None


async def once_in_postgres(
    connection: Any, known: dict[str, tuple[str, int]], table: str | None, context: ToolContext, work: Work
) -> Outcome:
    """Do the work in a transaction with its marker, or return its recorded result.

    `known` caches the marker tables: their full name and when they were last cleaned. Raises the driver's errors.
    """
    import psycopg

    wanted = table or TABLE
    full, cleared_at = known.get(wanted, ("", 0))
    try:
        if context.now() - cleared_at > _CLEARED_MS:
            full = await _ready(connection, wanted)
            known[wanted] = (full, context.now())
        return await _once(connection, full, context, work)
    except psycopg.errors.UndefinedTable:
        if await _full_name(connection, wanted) is not None:
            raise  # another table is missing
        return await _once(connection, await _ready(connection, wanted), context, work)


async def _once(connection: Any, full: str, context: ToolContext, work: Work) -> Outcome:
    key, marker_table = context.idempotency_key, full.replace("%", "%%")
    async with connection.transaction():
        taken = await connection.execute(
            f"INSERT INTO {marker_table} (key) VALUES (%s) ON CONFLICT (key) DO NOTHING RETURNING key", [key]
        )
        if await taken.fetchone() is None:
            found = await connection.execute(f"SELECT result FROM {marker_table} WHERE key = %s", [key])
            return _recorded_result((await found.fetchone())[0], context)
        result = await work()
        encoded = msgspec.json.encode(result).decode()
        await connection.execute(f"UPDATE {marker_table} SET result = %s WHERE key = %s", [encoded, key])
    return ok(result)


def _recorded_result(result: str, context: ToolContext) -> Outcome:
    context.log(_REPEATED)
    return ok(msgspec.json.decode(result))


async def _ready(connection: Any, table: str) -> str:
    """Create the table if missing, delete old markers, and return its full name."""
    import psycopg
    from psycopg import errors

    concurrently = (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject)
    found = await _full_name(connection, table)
    if found is None:
        try:
            await connection.execute(create_statement(table))
        except concurrently:
            pass  # another worker was first: the table, its type or its index was there when this one was written
        except errors.InsufficientPrivilege as error:
            message = f"{error}; a transactional task needs its marker table: {create_statement(table)}"
            raise errors.InsufficientPrivilege(message) from None
        found = await _full_name(connection, table)
    old = f"SELECT key FROM {found} WHERE written_at < now() - interval '{_KEPT_DAYS} days' LIMIT {_MOST_REMOVED}"
    with suppress(psycopg.Error):
        await connection.execute(f"DELETE FROM {found} WHERE key IN ({old})")
    return found or name(table)


async def _full_name(connection: Any, table: str) -> str | None:
    text = """SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname)
              FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)"""
    row = await (await connection.execute(text, [name(table)])).fetchone()
    return str(row[0]) if row is not None else None


def once_in_duckdb(
    connection: Any, table: str | None, context: ToolContext, work: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Do the same in a DuckDB file, which one process owns. Raises its errors."""
    _create_in_duckdb(connection, create_statement(table or TABLE))

    def once() -> dict[str, Any]:
        key, markers = context.idempotency_key, name(table or TABLE)
        found = connection.execute(f"SELECT result FROM {markers} WHERE key = ?", [key]).fetchone()
        if found is not None:
            recorded: dict[str, Any] = _recorded_result(found[0], context).result
            return recorded
        result = work()
        encoded = msgspec.json.encode(result).decode()
        connection.execute(f"INSERT INTO {markers} (key, result) VALUES (?, ?)", [key, encoded])
        return result

    return in_transaction(connection, once)


def _create_in_duckdb(connection: Any, statement: str) -> None:
    """Create the table before the transaction, which would conflict with others."""
    for tries_left in range(_MOST_TRIES, -1, -1):
        try:
            connection.execute(statement)
            return
        except Exception as error:
            if type(error).__name__ != "TransactionException" or not tries_left:
                raise
            sleep(_AGAIN_S)  # in a thread of its own


def in_transaction(connection: Any, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do the work in a DuckDB transaction."""
    connection.begin()
    try:
        result = work()
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
    return result
