"""Connection pool of one PostgreSQL database, which translates its errors.

Connections are opened on demand, and a lost one is replaced on its next use. Knows nothing of events or work. Tested in tests/conformance and
tests/unit/stores/postgres/test_*.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from noetl.audit.chain import with_references
from noetl.environ import variables
from noetl.extras import install_command
from noetl.model.errors import InvalidInput, NoetlError, StoreUnavailable
from noetl.ports import Audit
from noetl.settings import database_option
from noetl.stores.common.outage import Outage
from noetl.stores.common.queries import queries
from noetl.stores.postgres.migrations import SCHEMA, bring_up_to_date, make_partitions
from noetl.stores.postgres.rows import audit_rows

if TYPE_CHECKING:
    import asyncpg

# Statements are short, run as long as the process lives, and find rows by index. A plan that was made on empty tables must
# be good on full ones.
SESSION = {
    "application_name": "noetl",
    "search_path": SCHEMA,
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
_CONNECT_S = 5.0
_COMMAND_S = 30.0
_CONNECTIONS = 8
_REASONS = {  # by SQLSTATE; the longest match wins
    "08": "the connection was lost",
    "25006": "it is read-only: a standby, or configured so",
    "28": "it refuses the user or the password",
    "40": "it conflicts with another transaction",
    "42501": "its user lacks a permission",
    "53": "it has insufficient resources",
    "53100": "its disk is full",
    "53200": "it is out of memory",
    "53300": "it has too many connections already",
    "55P03": "a lock is not available",
    "57": "it is starting or stopping, or it cancelled the statement",
    "58": "it cannot read or write its files",
    "XX": "it reports an internal error or damaged data",
}


Refer = Callable[[list[Any]], tuple[str, str]]


class PostgresDatabase:
    """Pool of a few connections."""

    def __init__(self, url: str, *, connections: int = _CONNECTIONS) -> None:
        self.url = url
        self.name = shown(url)
        self._room = asyncio.Semaphore(connections)
        self._idle: list[asyncpg.Connection] = []
        self._apart: list[asyncpg.Connection] = []  # reserved for batches, with their prepared statements
        self._opening = asyncio.Lock()
        self._ready = False
        self._closed = False
        self._outage = Outage(self.name)
        self._sql = queries("postgres")

    async def rows(self, name: str, *values: Any) -> list[Any]:
        """Run one statement by name in its own transaction: one round trip."""
        async with self.connection() as connection:
            return list(await connection.fetch(self._sql[name], *values))

    async def noted(self, act: Audit, name: str, *values: Any, refer: Refer | None = None) -> list[Any]:
        """Run a statement by name; if it returns rows, audit it in its transaction.

        `refer` makes of the rows the references to the object before and after the change.
        """
        if act is None:
            return await self.rows(name, *values)
        async with self.transaction() as connection:
            found = list(await connection.fetch(self._sql[name], *values))
            if found:
                await self.note(connection, act if refer is None else with_references(act, *refer(found)))
        return found

    async def note(self, connection: asyncpg.Connection, act: Audit) -> None:
        """Write an audit entry in the open transaction."""
        if act is not None:
            await connection.execute(self._sql["put_audit"], audit_rows([act]))

    async def value(self, name: str, *values: Any) -> Any:
        """Run one statement by name and return the first column of its first row."""
        found = await self.rows(name, *values)
        return found[0][0] if found else None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection]:
        """Open a transaction on a connection of the pool."""
        async with self.connection() as connection, connection.transaction():
            yield connection

    def connection(self, *, apart: bool = False) -> AbstractAsyncContextManager[asyncpg.Connection]:
        """Take a connection, errors translated; `apart` ones serve only such callers."""
        return _Held(self, apart)

    async def take(self, *, apart: bool) -> asyncpg.Connection:
        """Take a connection, to be returned with `give_back`."""
        if self._closed:
            raise StoreUnavailable(f"the store {self.name} is closed")
        await self._room.acquire()
        try:
            return await self._take(self._apart if apart else self._idle)
        except BaseException as error:
            self._room.release()
            if isinstance(error, StoreUnavailable) and self._ready:
                self._outage.begin(error)
            raise

    def give_back(self, connection: asyncpg.Connection, error: BaseException | None, *, apart: bool) -> None:
        """Return a connection to the pool; raise its error as a NoETL error."""
        self._room.release()
        usable = error is None or (not connection.is_closed() and _is_usable_after(error))
        if usable and not self._closed:
            if self._outage.is_on:
                self._outage.end()
            (self._apart if apart else self._idle).append(connection)
        else:
            self._drop(connection)
        known = None if error is None else trouble(self.name, error)
        if known is not None:
            if not usable and isinstance(known, StoreUnavailable) and not self._closed:
                self._outage.begin(known)
            raise known from error

    async def _take(self, idle: list[asyncpg.Connection]) -> asyncpg.Connection:
        while idle:
            connection = idle.pop()
            if not connection.is_closed():
                return connection
        if not self._ready:
            async with self._opening:
                return await self._open()
        return await connect(self.url)

    async def _open(self) -> asyncpg.Connection:
        connection = await connect(self.url)
        if self._ready:
            return connection
        try:
            await bring_up_to_date(connection, self.name)
            await make_partitions(connection)
        except BaseException as error:
            connection.terminate()
            known = trouble(self.name, error)
            if known is not None:
                raise known from error
            raise
        self._ready = True
        return connection

    def _drop(self, connection: asyncpg.Connection) -> None:
        """Drop an unusable connection; idle ones are probably dead too."""
        connection.terminate()
        for other in self._take_idle():
            other.terminate()

    def _take_idle(self) -> list[asyncpg.Connection]:
        idle, self._idle, self._apart = [*self._idle, *self._apart], [], []
        return idle

    async def close(self) -> None:
        """Close idle connections; the others are closed when they are returned."""
        self._closed = True
        idle = self._take_idle()
        try:
            for connection in idle:
                try:
                    await connection.close(timeout=2)
                except Exception as error:
                    if trouble(self.name, error) is None:
                        raise
        finally:
            for connection in idle:  # those left if it is cancelled
                connection.terminate()


class _Held:
    __slots__ = ("_apart", "_connection", "_database")

    def __init__(self, database: PostgresDatabase, apart: bool) -> None:
        self._database = database
        self._apart = apart

    async def __aenter__(self) -> asyncpg.Connection:
        self._connection = await self._database.take(apart=self._apart)
        return self._connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.give_back(self._connection, error, apart=self._apart)


async def connect(url: str, **more: Any) -> asyncpg.Connection:
    """Open a connection with the search path of NoETL."""
    try:
        import asyncpg
    except ImportError:
        raise InvalidInput(
            f"The PostgreSQL store needs asyncpg, which is not installed. Run `{install_command('postgres')}`."
        ) from None
    try:
        options: dict[str, Any] = {"server_settings": SESSION, "timeout": _CONNECT_S, "command_timeout": _COMMAND_S}
        options["max_cached_statement_lifetime"] = 0  # statements stay prepared
        return await asyncpg.connect(url, **(options | more))
    except (asyncpg.ClientConfigurationError, ValueError) as error:
        raise InvalidInput(f"the address of the store is invalid: {error}") from None
    except asyncpg.InvalidCatalogNameError as error:
        raise StoreUnavailable(
            f"{shown(url)} does not exist. Create it with `noetl db init {database_option(variables(), url)}`."
        ) from error
    except Exception as error:
        known = trouble(shown(url), error)
        if known is not None:
            raise known from error
        raise


def shown(url: str) -> str:
    """Return an address without user and password, for messages."""
    parts = urlsplit(url)
    return f"PostgreSQL {parts.netloc.rpartition('@')[2] or 'local socket'}/{unquote(parts.path.lstrip('/'))}"


def trouble(name: str, error: BaseException) -> NoetlError | None:
    """Return the NoETL error for an error of the database; None for any other error."""
    import asyncpg

    if isinstance(error, NoetlError):
        return None
    if isinstance(error, asyncpg.PostgresError):
        state = str(getattr(error, "sqlstate", "") or "")
        reason = next((_REASONS[state[:size]] for size in (5, 2) if state[:size] in _REASONS), None)
        if reason is not None:
            return StoreUnavailable(f"the store {name} is unavailable: {reason} ({error})")
        return InvalidInput(f"the store {name} cannot store this value: {error}") if state.startswith("22") else None
    if isinstance(error, asyncpg.DataError):
        return InvalidInput(f"the store {name} cannot store this value: {error}")
    if isinstance(error, TimeoutError):
        return StoreUnavailable(f"the store {name} is unavailable: it does not answer")
    if isinstance(error, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError):
        return StoreUnavailable(f"the store {name} is unavailable: {error or type(error).__name__}")
    return None


def _is_usable_after(error: BaseException) -> bool:
    """Whether a connection is usable: after a refused statement or our own failure."""
    import asyncpg

    if isinstance(error, asyncpg.PostgresError):
        return not str(getattr(error, "sqlstate", "")).startswith(("08", "57", "58", "XX", "25006"))
    return isinstance(error, Exception) and not isinstance(
        error, OSError | TimeoutError | asyncpg.InterfaceError | asyncpg.InternalClientError
    )


def columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Transpose rows into columns for `unnest`."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
