"""Connections to one PostgreSQL database: opens them when they are asked for, keeps them, and tells of troubles in words.

A lost connection is replaced by the next one who asks. Knows nothing of events or work. Tested in tests/conformance and
tests/unit/stores/test_postgres*.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from noetl.model.errors import InvalidInput, NoetlError, StoreUnavailable
from noetl.ports import Act
from noetl.stores.postgres_migrations import SCHEMA, bring_up_to_date, make_partitions
from noetl.stores.postgres_rows import audit_rows
from noetl.stores.queries import queries

if TYPE_CHECKING:
    import asyncpg

# Statements are short, repeated for as long as the process lives, and find their rows by an index. A plan that was made
# while the tables were empty must be as good when they are full.
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
_REASONS = {  # by SQLSTATE, the longest match counts
    "08": "the connection was lost",
    "25006": "it is read-only now: a standby, or set to refuse writes",
    "28": "it refuses the user or the password",
    "3D000": "there is no such database",
    "40": "another transaction was in the way",
    "53": "it has no room for this now",
    "53100": "its disk is full",
    "53200": "it is out of memory",
    "53300": "it has too many connections already",
    "55P03": "a lock could not be had",
    "57": "it is starting, stopping or was told to stop this",
    "58": "it cannot read or write its files",
    "XX": "it reports damage or a mistake of its own",
}


class PostgresDatabase:
    """A few connections, each used by one at a time."""

    def __init__(self, url: str, *, connections: int = _CONNECTIONS) -> None:
        self.url = url
        self.name = shown(url)
        self._room = asyncio.Semaphore(connections)
        self._idle: list[asyncpg.Connection] = []
        self._apart: list[asyncpg.Connection] = []  # those that are kept for batches, with what they have prepared
        self._opening = asyncio.Lock()
        self._ready = False
        self._closed = False
        self._sql = queries("postgres")

    async def rows(self, name: str, *given: Any) -> list[Any]:
        """Run one statement by its name, in a transaction of its own: one round trip."""
        async with self.connection() as connection:
            return list(await connection.fetch(self._sql[name], *given))

    async def noted(self, act: Act, name: str, *given: Any) -> list[Any]:
        """Run one statement likewise; where it gave anything, who did it is written down in the same transaction."""
        if act is None:
            return await self.rows(name, *given)
        async with self.transaction() as connection:
            found = list(await connection.fetch(self._sql[name], *given))
            if found:
                await self.note(connection, act)
        return found

    async def note(self, connection: asyncpg.Connection, act: Act) -> None:
        """Write down who did something, in the transaction that does it."""
        if act is not None:
            await connection.execute(self._sql["put_audit"], audit_rows([act]))

    async def value(self, name: str, *given: Any) -> Any:
        """Give the first column of the first row."""
        found = await self.rows(name, *given)
        return found[0][0] if found else None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection]:
        """Hold a connection in a transaction."""
        async with self.connection() as connection, connection.transaction():
            yield connection

    def connection(self, *, apart: bool = False) -> AbstractAsyncContextManager[asyncpg.Connection]:
        """Hold a connection; whatever goes wrong with it is told as a NoETL error.

        One that is kept `apart` is given to those only who ask for such a one.
        """
        return _Held(self, apart)

    async def take(self, *, apart: bool) -> asyncpg.Connection:
        """Take a connection, which is given back by `give_back`."""
        if self._closed:
            raise StoreUnavailable(f"the store {self.name} is closed")
        await self._room.acquire()
        try:
            return await self._take(self._apart if apart else self._idle)
        except BaseException:
            self._room.release()
            raise

    def give_back(self, connection: asyncpg.Connection, error: BaseException | None, *, apart: bool) -> None:
        """Take a connection in again, and raise a trouble with the database in our words."""
        self._room.release()
        sound = error is None or (not connection.is_closed() and _harmless(error))
        if sound and not self._closed:
            (self._apart if apart else self._idle).append(connection)
        else:
            self._drop(connection)
        told = None if error is None else trouble(self.name, error)
        if told is not None:
            raise told from error

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
            told = trouble(self.name, error)
            if told is not None:
                raise told from error
            raise
        self._ready = True
        return connection

    def _drop(self, connection: asyncpg.Connection) -> None:
        """Let go of a connection that cannot be used; those that wait idle are probably as dead."""
        connection.terminate()
        for other in self._let_go():
            other.terminate()

    def _let_go(self) -> list[asyncpg.Connection]:
        idle, self._idle, self._apart = [*self._idle, *self._apart], [], []
        return idle

    async def close(self) -> None:
        """Close every connection that nobody uses; the others close when they are given back."""
        self._closed = True
        for connection in self._let_go():
            try:
                await connection.close(timeout=2)
            except (OSError, TimeoutError):
                connection.terminate()


class _Held:
    """A connection in somebody's hands."""

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
    """Open a connection whose names are found in the schema of NoETL."""
    try:
        import asyncpg
    except ImportError:
        raise InvalidInput("the PostgreSQL store needs asyncpg: pip install 'noetl[postgres]'") from None
    try:
        given: dict[str, Any] = {"server_settings": SESSION, "timeout": _CONNECT_S, "command_timeout": _COMMAND_S}
        given["max_cached_statement_lifetime"] = 0  # what is prepared stays prepared
        return await asyncpg.connect(url, **(given | more))
    except (asyncpg.ClientConfigurationError, ValueError) as error:
        raise InvalidInput(f"the address of the store cannot be used: {error}") from None
    except Exception as error:
        told = trouble(shown(url), error)
        if told is not None:
            raise told from error
        raise


def shown(url: str) -> str:
    """Give an address as people may see it: without user and password."""
    parts = urlsplit(url)
    return f"PostgreSQL {parts.netloc.rpartition('@')[2] or 'local socket'}/{unquote(parts.path.lstrip('/'))}"


def trouble(name: str, error: BaseException) -> NoetlError | None:
    """Give the NoETL error for what went wrong; None where it is none of the database's business."""
    import asyncpg

    if isinstance(error, NoetlError):
        return None
    if isinstance(error, asyncpg.PostgresError):
        state = str(getattr(error, "sqlstate", "") or "")
        reason = next((_REASONS[state[:size]] for size in (5, 2) if state[:size] in _REASONS), None)
        if reason is not None:
            return StoreUnavailable(f"the store {name} cannot be used now: {reason} ({error})")
        return InvalidInput(f"the store {name} cannot keep this: {error}") if state.startswith("22") else None
    if isinstance(error, asyncpg.DataError):
        return InvalidInput(f"the store {name} cannot keep this: {error}")
    if isinstance(error, TimeoutError):
        return StoreUnavailable(f"the store {name} cannot be used now: it does not answer")
    if isinstance(error, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError):
        return StoreUnavailable(f"the store {name} cannot be used now: {error or type(error).__name__}")
    return None


def _harmless(error: BaseException) -> bool:
    """Tell whether a connection can be used after an error: the server itself refused, or our own code did."""
    import asyncpg

    if isinstance(error, asyncpg.PostgresError):
        return not str(getattr(error, "sqlstate", "")).startswith(("08", "57", "58", "XX", "25006"))
    return isinstance(error, Exception) and not isinstance(
        error, OSError | TimeoutError | asyncpg.InterfaceError | asyncpg.InternalClientError
    )


def columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Turn rows into columns, as `unnest` takes them."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
