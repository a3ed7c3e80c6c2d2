"""Connections to one PostgreSQL database, used again by the tasks of a worker.

Whoever asks gets an idle connection, or a new one; a database that cannot be reached is told at once, not waited for. Every
task finds a fresh session: what an earlier one set is discarded, and strings mean what the standard says, on which the
quoting of templates rests. A task that is cancelled cancels its query on the server. Tested in tests/tools/test_postgres.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

MOST_CONNECTIONS = 10
_CONNECT_S = 10  # where the credential says nothing
_CANCEL_S = 5


class NoConnectionError(Exception):
    """No connection stands; the message is the driver's."""

    timed_out = False


class ConnectTimeoutError(NoConnectionError):
    """No connection stood in time."""

    timed_out = True


class PgPool:
    """The connections of one address."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._idle: list[Any] = []
        self._room = asyncio.Semaphore(MOST_CONNECTIONS)
        self._closed = False
        self.markers: dict[str, tuple[str, int]] = {}  # tables of completion markers that are known to be there

    @asynccontextmanager
    async def connection(self, within_s: float | None = None) -> AsyncIterator[Any]:
        """Give a connection in autocommit; raises NoConnectionError, also where a new one takes longer than that."""
        async with self._room:
            connection = await self._idle_one() or await self._connect_within(within_s)
            try:
                yield connection
            except asyncio.CancelledError:
                ending = asyncio.ensure_future(_end(connection))
                while not ending.done():  # also for who is cancelled twice: no query may go on
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
                await found.close()  # the server was restarted, or ended it
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
            raise ConnectTimeoutError(f"there was no answer within {seconds:g} s") from None

    async def _connect(self) -> Any:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        more: dict[str, Any] = (
            {} if "connect_timeout" in conninfo_to_dict(self._address) else {"connect_timeout": _CONNECT_S}
        )
        try:
            made = await psycopg.AsyncConnection.connect(self._address, autocommit=True, prepare_threshold=None, **more)
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
        """Close the idle connections; those in use are closed when they come back."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(one.close() for one in idle))


async def _end(connection: Any) -> None:
    """Stop what a connection does on the server, and close it."""
    try:
        with suppress(Exception):  # a server that is gone has stopped too
            await connection.cancel_safe(timeout=_CANCEL_S)
    finally:
        await connection.close()


async def _standard_strings(connection: Any) -> None:
    if connection.info.parameter_status("standard_conforming_strings") != "on":
        await connection.execute("SET standard_conforming_strings = on")
