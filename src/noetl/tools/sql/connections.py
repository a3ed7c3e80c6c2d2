"""Database connections of SQL kinds: pools by credential, errors by code.

Tested in tests/tools/test_postgres.py and test_duckdb.py.
"""

import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, Protocol
from weakref import WeakValueDictionary

from noetl.extras import install_command
from noetl.model.outcome import ErrorKind, Outcome, failed
from noetl.ports import ToolContext
from noetl.ports.work import OwnThread, Walls
from noetl.tools.sql.duckdb_pool import DuckdbPool
from noetl.tools.sql.files import CONFINED, read_file
from noetl.tools.sql.pg_pool import DeniedError, NoConnectionError, PgPool

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
_FILES = ("passfile", "sslcert", "sslkey", "sslrootcert", "sslcrl", "servicefile")
# Options of a connection that a confined task may write itself: the driver reads and writes no file for them.
_FREE = frozenset({
    "application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "fallback_application_name",
    "host", "hostaddr", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "load_balance_hosts",
    "max_protocol_version", "min_protocol_version", "options", "password", "port", "require_auth", "ssl_max_protocol_version",
    "ssl_min_protocol_version", "sslcompression", "sslmode", "sslnegotiation", "sslsni", "target_session_attrs",
    "tcp_user_timeout", "user",
})  # fmt: skip
_REFUSED = ("authentication failed", "no password supplied", "no pg_hba.conf entry", 'role "', "permission denied")
_DUCKDB: dict[str, ErrorKind] = {
    "ConstraintException": "db_constraint", "ParserException": "parse", "BinderException": "client_error",
    "CatalogException": "not_found", "ConversionException": "schema", "InvalidInputException": "client_error",
    "IOException": "connection", "HTTPException": "connection", "ConnectionException": "db_connection",
    "TransactionException": "db_deadlock",
}  # fmt: skip
_HARMLESS = ("TimeZone", "Calendar", "search_path", "schema", "default_order", "default_null_order", "integer_division")
_NO_NETWORK = "With NOETL_SANDBOX or egress rules (NOETL_EGRESS_PRIVATE), DuckDB has no network and no extensions."
_DENIED = ("Permission denied", "by configuration", "through configuration", "has been locked", "to be loaded")
_RETRYABLE_DUCKDB = frozenset({"HTTPException", "TransactionException"})


class Reaches(Protocol):
    """Where a task may connect to."""

    async def addresses(self, host: str, port: int) -> list[str] | None: ...


class _Opening:
    """Lock of a database, which all connections to it share with its settings."""

    def __init__(self) -> None:
        self.lock = Lock()


_opening: WeakValueDictionary[str, _Opening] = WeakValueDictionary()  # by database


async def pg_pool(auth: Any, context: ToolContext) -> Any:
    """Return a credential's pool. Raises KeyError if unknown, ValueError if unusable."""
    if auth is None:
        raise ValueError("the task has no credential; set `auth` to the credential of the database")
    given = auth if isinstance(auth, Mapping) else await context.credential(str(auth))
    address = connection_string(given)
    await _check_options(address, context, is_own=isinstance(auth, Mapping))

    async def open_pool() -> Any:
        return PgPool(address, partial(permitted_string, context=context))

    return await context.shared(f"postgres:{address}", open_pool)


def connection_string(given: Mapping[str, Any]) -> str:
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


async def pg_connect(given: Mapping[str, Any], context: Reaches, seconds: int) -> Any:
    """Sign in with a credential; return a connection with autocommit. Raises OSError."""
    try:
        import psycopg
    except ImportError:
        raise OSError(f"the driver of PostgreSQL is missing: `{install_command('postgres')}`") from None
    try:
        address = await permitted_string(connection_string(given), context)
    except psycopg.Error:  # it quotes the string
        raise OSError("the connection string cannot be read. Write `postgresql://user:password@host/name`.") from None
    try:
        return await psycopg.AsyncConnection.connect(address, autocommit=True, connect_timeout=seconds)
    except psycopg.Error as error:
        raise OSError(" ".join(str(error).split())) from None


async def pg_greeting(given: Mapping[str, Any], context: Reaches, seconds: int) -> tuple[str, str, str]:
    """Sign in with a credential; return the server, user and database. Raises OSError."""
    async with await pg_connect(given, context, seconds) as opened:
        row = await (await opened.execute("SELECT current_user, current_database()")).fetchone()
        number, info = opened.info.server_version, opened.info
        place = f"PostgreSQL {number // 10000}.{number % 10000} at {info.host}:{info.port}"
    user, database = row or ("", "")
    return place, str(user), str(database)


async def permitted_string(address: str, context: Reaches) -> str:
    """Return a connection string whose hosts are addresses that may be reached.

    Raises PermissionError and OSError. Without a host the driver uses a socket of this machine.
    """
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    parts = {key: str(value) for key, value in conninfo_to_dict(address).items() if value is not None}
    hosts, numbers = parts.get("host", "").split(","), parts.get("hostaddr", "").split(",")
    hosts = hosts if parts.get("host") else [""] * len(numbers)
    ports = parts.get("port", "").split(",")
    found: list[tuple[str, str, str]] = []
    for at, host in enumerate(hosts):
        number = numbers[at] if at < len(numbers) else ""
        port = (ports[at] if at < len(ports) else ports[-1]) or "5432"
        local = not number and (not host or host.startswith(("/", "@")))
        allowed = await context.addresses("localhost" if local else number or host, int(port))
        if allowed is None:
            return address
        found += [(host, "", port)] if local else [(host or one, one, port) for one in allowed]
    told = {
        key: ",".join(values)
        for key, values in zip(("host", "hostaddr", "port"), zip(*found, strict=True), strict=True)
    }
    return make_conninfo(**{**parts, **told})


async def _check_options(address: str, context: ToolContext, *, is_own: bool) -> None:
    """Refuse what a confined task may not have the driver do (ValueError).

    The driver runs in the worker, outside the walls. A task that writes the connection itself names no files; of a
    stored credential, it must be able to read them.
    """
    others = _guarded_options(address)
    if not others:
        return
    async with context.thread() as thread:
        if thread.walls.is_open:
            return
        if is_own:
            raise ValueError(
                f"a task on this worker may not set `{others[0][0]}`; store a credential and name it in `auth`"
            )
        for key, value in others:
            try:
                if key in _FILES:
                    await read_file(Path(value), thread)
            except OSError as error:
                raise ValueError(f"cannot read the file of `{key}`: {error.strerror}") from None


@lru_cache(maxsize=256)  # a string is read once, not for every task; the pool keeps it as well
def _guarded_options(address: str) -> tuple[tuple[str, str], ...]:
    """Return the options of a connection that a confined task may not write itself."""
    from psycopg.conninfo import conninfo_to_dict

    found = {key: str(value) for key, value in conninfo_to_dict(address).items() if value is not None}
    return tuple((key, found[key]) for key in sorted(found.keys() - _FREE))


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
    if isinstance(error, DeniedError):
        return failed("client_error", str(error), code="EGRESS_DENIED")
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


@asynccontextmanager
async def duckdb_connection(
    database: str | None, context: ToolContext, *, read_only: bool = False, texts: Sequence[str] | None = None
) -> AsyncIterator[tuple[Any, Callable[..., Awaitable[Any]], str]]:
    """Open a DuckDB connection in its own thread; also yield what runs jobs there.

    The third value is the thread's folder. The name is relative to the playbook's folder. With `texts`, all statements
    that will run, a task in memory may get an instance of the pool. Cancellation interrupts a query. Raises
    PermissionError for what the walls refuse, else the driver's errors.
    """
    import duckdb

    place = ":memory:" if database in (None, ":memory:") else str(Path(context.folder, database or ""))
    pool = await context.shared("duckdb", _open_pool) if place == ":memory:" and texts else None
    opening = _own_duckdb(place, context, read_only=read_only) if pool is None else pool.connection(context, texts)
    async with opening as (connection, thread):
        walls = thread.walls
        try:
            yield connection, partial(thread.run, interrupt=connection.interrupt), thread.folder
        except duckdb.Error as error:
            raise _refusal(error, walls) or error from None


@asynccontextmanager
async def _own_duckdb(place: str, context: ToolContext, *, read_only: bool) -> AsyncIterator[tuple[Any, OwnThread]]:
    import duckdb

    async with context.thread() as thread:
        try:
            connection = await thread.run(_open_duckdb, place, read_only, thread)
        except duckdb.Error as error:
            raise _refusal(error, thread.walls) or error from None
        try:
            yield connection, thread
        finally:
            await thread.run(connection.close)


def _refusal(error: Any, walls: Walls) -> PermissionError | None:
    """Return what to raise for an error of the driver that the walls caused."""
    text = str(error).strip()
    if (walls.is_open and walls.has_network) or not any(words in text for words in _DENIED):
        return None
    return PermissionError(f"{text}. {CONFINED + ' ' if not walls.is_open else ''}{_NO_NETWORK}")


async def _open_pool() -> DuckdbPool:
    return DuckdbPool(_open_duckdb)


def _open_duckdb(place: str, read_only: bool, thread: OwnThread) -> Any:
    import duckdb

    if not place.startswith(":") and os.path.exists(place) and not os.path.isfile(place):
        raise PermissionError(errno.EPERM, f"The database {place} is no regular file.")
    opening = _opening.setdefault(place, _Opening())
    with opening.lock:
        connection = duckdb.connect(place, read_only=read_only)
        try:
            _confine(connection, thread, place)
        except BaseException:
            connection.close()
            raise
        return connection


def _confine(connection: Any, thread: OwnThread, place: str) -> None:
    """Switch off what would leave the walls: networks, extensions, other settings.

    The kernel judges files; the list of folders keeps paths out that are no files, such as open pipes of the worker. A
    database that another task has open has its settings already.
    """
    walls = thread.walls
    locked = connection.execute("SELECT current_setting('lock_configuration')").fetchone()[0]
    if locked or (walls.is_open and walls.has_network):
        return
    allowed = ["'" + path.replace("'", "''") + "'" for path in thread.folders()]
    folders = ", ".join(path for path in allowed if path.endswith("/'"))
    files = ", ".join(path for path in allowed if not path.endswith("/'"))
    given = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "extension_directory": "'/proc/none'",  # none that can be written: nothing is installed
    }
    if thread.folder and place == ":memory:":
        given["temp_directory"] = f"'{thread.folder}'"
    if walls.memory and not walls.is_open:
        given["memory_limit"] = f"'{walls.memory >> 20}MiB'"
    if walls.disk and not walls.is_open:
        given["max_temp_directory_size"] = f"'{walls.disk >> 20}MiB'"
    given |= {"allowed_directories": f"[{folders}]", "allowed_paths": f"[{files}]", "enable_external_access": "false"}
    given |= {"allowed_configs": str(list(_HARMLESS)), "lock_configuration": "true"}
    for setting, value in given.items():
        connection.execute(f"SET {setting} = {value}")


def duckdb_failed(error: Exception) -> Outcome:
    kind = type(error).__name__
    if isinstance(error, PermissionError):
        return failed("client_error", str(error), code="CONFINED")
    if kind == "IOException" and "Could not set lock" in str(error):  # nothing was executed
        fix = "; another process has the database open. `read_only: true` lets several read it"
        return failed("db_connection", f"{str(error).splitlines()[0]}{fix}", code="DUCKDB_LOCKED", retryable=True)
    return failed(_DUCKDB.get(kind, "unknown"), str(error), code=f"DUCKDB_{kind}", retryable=kind in _RETRYABLE_DUCKDB)


def missing_library(extra: str, library: str) -> Outcome:
    """Return the failure of a task whose library is an extra that is not installed."""
    message = f"{library} is not installed on the worker. Run `{install_command(extra)}` there."
    return failed("unknown", message, code="MISSING_EXTRA")
