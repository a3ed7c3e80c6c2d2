"""Database connections of SQL kinds: pools by credential, errors by code.

Tested in tests/tools/test_postgres.py and test_duckdb.py.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any

from noetl.extras import install_command
from noetl.model.outcome import ErrorKind, Outcome, failed
from noetl.ports import ToolContext
from noetl.tools.sql.pg_pool import NoConnectionError, PgPool

_BY_CODE: dict[str, ErrorKind] = {"40001": "db_deadlock", "40P01": "db_deadlock", "57014": "db_timeout"}
_BY_CLASS: dict[str, ErrorKind] = {
    "08": "db_connection", "22": "schema", "23": "db_constraint", "28": "auth", "42": "client_error",
    "53": "db_connection", "57": "db_connection",
}  # fmt: skip
_RETRYABLE_CODES = frozenset({"40001", "40P01", "57P01", "57P02", "57P03"})
_RETRYABLE_CLASSES = frozenset({"08", "53"})
_PARTS = {
    "host": "host", "port": "port", "user": "user", "username": "user", "password": "password", "dbname": "dbname",
    "database": "dbname", "db_host": "host", "db_port": "port", "db_user": "user", "db_password": "password",
    "db_name": "dbname", "sslmode": "sslmode",
}  # fmt: skip
_REFUSED = ("authentication failed", "no password supplied", "no pg_hba.conf entry", 'role "', "permission denied")
_DUCKDB: dict[str, ErrorKind] = {
    "ConstraintException": "db_constraint", "ParserException": "parse", "BinderException": "client_error",
    "CatalogException": "not_found", "ConversionException": "schema", "InvalidInputException": "client_error",
    "IOException": "connection", "HTTPException": "connection", "ConnectionException": "db_connection",
    "TransactionException": "db_deadlock",
}  # fmt: skip
_AGAIN_S = 0.05  # between two interrupts of a query
_RETRYABLE_DUCKDB = frozenset({"HTTPException", "TransactionException"})


async def pg_pool(auth: Any, context: ToolContext) -> Any:
    """Return a credential's pool. Raises KeyError if unknown, ValueError if unusable."""
    if auth is None:
        raise ValueError("the task has no credential; set `auth` to the credential of the database")
    given = auth if isinstance(auth, Mapping) else await context.credential(str(auth))
    address = _address(given)

    async def open_pool() -> Any:
        return PgPool(address)

    return await context.shared(f"postgres:{address}", open_pool)


def _address(given: Mapping[str, Any]) -> str:
    """Return the connection string of a credential, given or built from its parts."""
    from psycopg.conninfo import make_conninfo

    inner = given.get("data")
    parts = inner if isinstance(inner, Mapping) else given
    whole = parts.get("dsn") or parts.get("url") or parts.get("conninfo")
    if whole:
        return str(whole)
    found = {_PARTS[key]: str(value) for key, value in parts.items() if key in _PARTS and value is not None}
    if "host" not in found and "dbname" not in found:
        raise ValueError("the credential has no connection: set `dsn`, or `host`, `user` and `dbname`")
    return make_conninfo(**found)


def _not_connected(message: str) -> Outcome:
    """Classify a failed connection, by the server's message; nothing was sent."""
    reason = f"cannot connect to the database: {message}"
    if any(words in message for words in _REFUSED):
        return failed("auth", reason, code="PG_28000")
    if 'database "' in message and "does not exist" in message:
        return failed("not_found", reason, code="PG_3D000")
    return failed("db_connection", reason, code="PG_08001", retryable=True)


def pg_failed(error: Any) -> Outcome:
    """Convert a PostgreSQL error to an outcome; without SQLSTATE it may have executed."""
    if isinstance(error, NoConnectionError) and error.timed_out:
        return failed("timeout", f"cannot connect to the database: {error}", code="PG_08001", retryable=True)
    if isinstance(error, NoConnectionError):
        return _not_connected(str(error))
    code = error.sqlstate or ""
    message = str(error).strip() or type(error).__name__
    if not code:
        lost = type(error).__name__ in ("OperationalError", "InterfaceError")
        kind: ErrorKind = "db_connection" if lost else "client_error"
        return failed(kind, message, code=f"PG_{type(error).__name__}", retryable=lost, sent=lost)
    return failed(
        _BY_CODE.get(code) or _BY_CLASS.get(code[:2], "unknown"),
        message,
        code=f"PG_{code}",
        retryable=code in _RETRYABLE_CODES or code[:2] in _RETRYABLE_CLASSES,
        sent=code[:2] in ("08", "57"),
        pg={"code": code, "sqlstate": code},
    )


async def in_thread(connection: Any, job: Callable[..., Any], *given: Any) -> Any:
    """Run a job on a DuckDB connection in its own thread; cancellation interrupts it.

    A shared thread pool would let long queries block file reads. An interrupt before the query has begun is ignored, so it
    is repeated until the job ends.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(answer: Any, error: BaseException | None) -> None:
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(answer)

    def work() -> None:
        answer, error = None, None
        try:
            answer = job(*given)
        except BaseException as raised:  # noqa: BLE001  re-raised in the waiting task
            error = raised
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(settle, answer, error)

    Thread(target=work, name="noetl-duckdb", daemon=True).start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            connection.interrupt()
            await asyncio.wait([done], timeout=_AGAIN_S)
        done.exception()  # retrieve it: the caller cancelled the job
        raise


def duckdb_failed(error: Exception) -> Outcome:
    kind = type(error).__name__
    return failed(_DUCKDB.get(kind, "unknown"), str(error), code=f"DUCKDB_{kind}", retryable=kind in _RETRYABLE_DUCKDB)


def missing_library(extra: str, library: str) -> Outcome:
    """Return the failure of a task whose library is an extra that is not installed."""
    message = f"{library} is not installed on the worker. Run `{install_command(extra)}` there."
    return failed("unknown", message, code="MISSING_EXTRA")
