"""Connection pool of one PostgreSQL database, shared by the tasks of a worker.

Returns an idle connection or opens a new one; an unreachable database fails immediately. Every task gets a fresh session:
`standard_conforming_strings` is on, which the quoting of templates requires, and what a task left in its session is
discarded once it has its result, so that the next one sends its own statements only. A connection that was unused for a
while is tried before it is given; otherwise a look at its socket tells whether the server has ended it. Cancelling a task
cancels its query on the server. A task may set the pool's size. Tested in tests/tools/test_postgres.py.
"""

from __future__ import annotations

import asyncio
import select
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct

MOST_CONNECTIONS = 10
_CONNECT_S = 10  # unless the credential sets it
_CANCEL_S = 5
_RESET_S = 5
_TRUSTED_S = 0.5  # of a connection that was used so recently, only the socket is looked at


class NoConnectionError(Exception):
    """No connection; the message is the driver's."""

    timed_out = False


class ConnectTimeoutError(NoConnectionError):
    """No connection within the time-out."""

    timed_out = True


class DeniedError(NoConnectionError):
    """The egress rules do not allow the server; the message says why."""


class PoolSize(Struct, frozen=True):
    """How many connections a pool has, and for how long; times are in seconds."""

    min_size: int = 0  # kept open
    max_size: int = MOST_CONNECTIONS
    timeout: float | None = None  # of a task's wait for a connection
    max_waiting: int | None = None
    max_lifetime: float | None = None
    max_idle: float | None = None


class _Room:
    """Places of a pool, in order of arrival; their number may change at any time."""

    def __init__(self) -> None:
        self._used = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self, size: PoolSize) -> None:
        """Take a place. Raises NoConnectionError where too many wait, or for too long."""
        if self._used < size.max_size and not self._waiting:
            self._used += 1
            return
        if size.max_waiting is not None and len(self._waiting) >= size.max_waiting:
            raise NoConnectionError(f"{len(self._waiting)} tasks wait for a connection of the pool already")
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(size.timeout):
                await place
        except BaseException as error:
            if place in self._waiting:
                self._waiting.remove(place)
            elif place.done() and not place.cancelled():
                self.leave(size)  # the place came at the same time
            if isinstance(error, TimeoutError):
                message = f"the pool of {size.max_size} connections had none free within {size.timeout:g} s"
                raise ConnectTimeoutError(message) from None
            raise

    @property
    def used(self) -> int:
        """Number of places in use."""
        return self._used

    def leave(self, size: PoolSize) -> None:
        """Return a place."""
        self._used -= 1
        self.admit(size)

    def admit(self, size: PoolSize) -> None:
        """Admit waiting tasks, as far as there is room."""
        while self._waiting and self._used < size.max_size:
            place = self._waiting.popleft()
            if not place.done():
                self._used += 1
                place.set_result(None)


class PgPool:
    def __init__(self, address: str, permitted: Callable[[str], Awaitable[str]] | None = None) -> None:
        self._address = address
        self._permitted = permitted  # returns the address with the hosts that may be reached
        self._idle: list[tuple[Any, float]] = []
        self._born: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
        self._resets: set[asyncio.Task[None]] = set()
        self._room = _Room()
        self._size = PoolSize()
        self._filling = False
        self._closed = False
        self.markers: dict[str, tuple[str, int]] = {}  # existing marker tables

    def resize(self, size: PoolSize) -> None:
        """Set the size of the pool, for the tasks that wait already too."""
        if size != self._size:
            self._size = size
            self._room.admit(size)

    @asynccontextmanager
    async def connection(self, within_s: float | None = None) -> AsyncIterator[Any]:
        """Return an autocommit connection within `within_s`. Raises NoConnectionError."""
        await self._room.enter(self._size)
        used = None
        try:
            connection = await self._found() or await self._connect_within(within_s)
            await self._fill()
            try:
                yield connection
            except asyncio.CancelledError:
                ending = asyncio.ensure_future(_end(connection))
                while not ending.done():  # even if cancelled twice: no query may continue
                    with suppress(asyncio.CancelledError):
                        await asyncio.shield(ending)
                raise
            except BaseException:
                used = connection
                raise
            used = connection
        finally:
            if used is None:
                self._room.leave(self._size)
            else:
                self._put_back(used)

    async def _fill(self) -> None:
        """Open as many connections as the pool keeps; one that fails is left out."""
        missing = self._size.min_size - self._room.used - len(self._idle)
        if missing <= 0 or self._filling:
            return
        self._filling = True
        try:
            opened = await asyncio.gather(*(self._connect() for _ in range(missing)), return_exceptions=True)
        finally:
            self._filling = False
        for one in opened:
            if not isinstance(one, BaseException):
                await self._keep(one)

    async def _found(self) -> Any:
        """Return an idle connection, also one that is being reset now; else None."""
        found = await self._idle_one()
        if found is None and self._resets:  # sooner than a new one
            await asyncio.wait(self._resets, return_when=asyncio.FIRST_COMPLETED)
            found = await self._idle_one()
        return found

    async def _idle_one(self) -> Any:
        while self._idle:
            found, since = self._idle.pop()
            try:
                if not self._is_old(found, since) and await _is_open(found, since):
                    return found
            except BaseException:
                await found.close()
                raise
            await found.close()
        return None

    def _is_old(self, connection: Any, since: float) -> bool:
        """Return whether a connection was unused, or open, for too long."""
        now, size = monotonic(), self._size
        was_unused = size.max_idle is not None and now - since > size.max_idle
        return was_unused or (size.max_lifetime is not None and now - self._born[connection] > size.max_lifetime)

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
        self._born[made] = monotonic()
        return made

    def _put_back(self, connection: Any) -> None:
        """Reset the connection of a task that has ended, and then return its place."""
        task = asyncio.create_task(self._reset(connection), name="noetl-pg-reset")
        self._resets.add(task)
        task.add_done_callback(self._resets.discard)

    async def _reset(self, connection: Any) -> None:
        import psycopg
        from psycopg.pq import TransactionStatus

        try:
            if connection.closed or connection.info.transaction_status != TransactionStatus.IDLE:
                await connection.close()
                return
            async with asyncio.timeout(_RESET_S):
                await connection.execute("DISCARD ALL")
                await _standard_strings(connection)
            await self._keep(connection)
        except (psycopg.Error, TimeoutError):
            await connection.close()
        except BaseException:
            await connection.close()
            raise
        finally:
            self._room.leave(self._size)

    async def _keep(self, connection: Any) -> None:
        if self._closed:
            await connection.close()
        else:
            self._idle.append((connection, monotonic()))

    async def close(self) -> None:
        """Close idle connections; those in use are closed when returned."""
        self._closed = True
        if self._resets:
            await asyncio.wait(self._resets)
        idle, self._idle = self._idle, []
        await asyncio.gather(*(one.close() for one, _ in idle))


async def _end(connection: Any) -> None:
    try:
        with suppress(Exception):  # a stopped server runs no query
            await connection.cancel_safe(timeout=_CANCEL_S)
    finally:
        await connection.close()


async def _is_open(connection: Any, since: float) -> bool:
    """Return whether a connection that has been idle can be used."""
    import psycopg

    if connection.closed or _has_input(connection):
        return False  # a server says nothing unasked but that it ends
    if monotonic() - since > _TRUSTED_S:
        try:
            await connection.execute("")
        except psycopg.Error:
            return False  # lost on the way, without a word
    return True


def _has_input(connection: Any) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


async def _standard_strings(connection: Any) -> None:
    if connection.info.parameter_status("standard_conforming_strings") != "on":
        await connection.execute("SET standard_conforming_strings = on")
