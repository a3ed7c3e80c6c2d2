"""Connection pool of one PostgreSQL database, shared by the tasks of a worker.

Returns an idle connection or opens a new one; an unreachable database fails immediately. Every task gets a fresh session:
settings of earlier tasks are discarded, and `standard_conforming_strings` is on, which the quoting of templates requires.
Cancelling a task cancels its query on the server. Tested in tests/tools/test_postgres.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

MOST_CONNECTIONS = 10
_CONNECT_S = 10  # unless the credential sets it
_CANCEL_S = 5


class NoConnectionError(Exception):
    """No connection; the message is the driver's."""

    timed_out = False


class ConnectTimeoutError(NoConnectionError):
    """No connection within the time-out."""

    timed_out = True


class DeniedError(NoConnectionError):
    """The egress rules do not allow the server; the message says why."""


class PgPool:
    def __init__(self, address: str, permitted: Callable[[str], Awaitable[str]] | None = None) -> None:
        self._address = address
        self._permitted = permitted  # returns the address with the hosts that may be reached
        self._idle: list[Any] = []
        self._room = asyncio.Semaphore(MOST_CONNECTIONS)
        self._closed = False
        self.markers: dict[str, tuple[str, int]] = {}  # existing marker tables

    @asynccontextmanager
    async def connection(self, within_s: float | None = None) -> AsyncIterator[Any]:
        """Return an autocommit connection within `within_s`. Raises NoConnectionError."""
        async with self._room:
            connection = await self._idle_one() or await self._connect_within(within_s)
            try:
                yield connection
            except asyncio.CancelledError:
                ending = asyncio.ensure_future(_end(connection))
                while not ending.done():  # even if cancelled twice: no query may continue
                    with suppress(asyncio.CancelledError):
                        await asyncio.shield(ending)
                raise
            except BaseException:
                await self._put_back(connection)
                raise
            await self._put_back(connection)

    async def _idle_one(self) -> Any:
        import psycopg

        while self._idle:
            found = self._idle.pop()
            try:
                await found.execute("DISCARD ALL")
                await _standard_strings(found)
            except psycopg.Error:
                await found.close()  # the server restarted or closed it
            except BaseException:
                await found.close()
                raise
            else:
                return found
        return None

    async def _connect_within(self, seconds: float | None) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await self._connect()
        except TimeoutError:
            raise ConnectTimeoutError(f"no response within {seconds:g} s") from None

    async def _connect(self) -> Any:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        more: dict[str, Any] = (
            {} if "connect_timeout" in conninfo_to_dict(self._address) else {"connect_timeout": _CONNECT_S}
        )
        try:
            address = self._address if self._permitted is None else await self._permitted(self._address)
        except PermissionError as error:
            raise DeniedError(str(error)) from None
        except OSError as error:
            raise NoConnectionError(error.strerror or str(error)) from None
        try:
            made = await psycopg.AsyncConnection.connect(address, autocommit=True, prepare_threshold=None, **more)
        except psycopg.OperationalError as error:
            raise NoConnectionError(str(error).strip() or type(error).__name__) from None
        await _standard_strings(made)
        return made

    async def _put_back(self, connection: Any) -> None:
        from psycopg.pq import TransactionStatus

        if self._closed or connection.closed or connection.info.transaction_status != TransactionStatus.IDLE:
            await connection.close()
        else:
            self._idle.append(connection)

    async def close(self) -> None:
        """Close idle connections; those in use are closed when returned."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(one.close() for one in idle))


async def _end(connection: Any) -> None:
    try:
        with suppress(Exception):  # a stopped server runs no query
            await connection.cancel_safe(timeout=_CANCEL_S)
    finally:
        await connection.close()


async def _standard_strings(connection: Any) -> None:
    if connection.info.parameter_status("standard_conforming_strings") != "on":
        await connection.execute("SET standard_conforming_strings = on")
