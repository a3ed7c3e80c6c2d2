"""Stores whose threads and servers keep pretended time still while they work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from noetl.stores.postgres.database import PostgresDatabase
from noetl.stores.postgres.store import PostgresStore
from noetl.stores.sqlite.database import Database
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.virtual_time import threads

Result = TypeVar("Result")


class WatchedDatabase(Database):
    """Stops virtual time while its thread works."""

    def submit(self, job: Callable[[Any], Result]) -> asyncio.Future[Result]:
        stopped = ExitStack()
        stopped.enter_context(threads())
        future = super().submit(job)
        future.add_done_callback(lambda _: stopped.close())
        return future


class WatchedStore(SqliteStore):
    def __init__(self, path: Path) -> None:
        super().__init__(path, WatchedDatabase(path))

    async def close(self) -> None:
        with threads():
            await super().close()


class WatchedServer(PostgresDatabase):
    """Keeps pretended time still while a server works."""

    @asynccontextmanager
    async def connection(self, *, apart: bool = False) -> AsyncIterator[Any]:
        with threads():
            async with super().connection(apart=apart) as connection:
                yield connection


class WatchedPostgres(PostgresStore):
    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.database = WatchedServer(address, connections=1)  # requests are answered in order
