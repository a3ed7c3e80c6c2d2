"""One SQLite connection in a thread of its own: opens it, brings its tables up to date, runs what is asked in order.

Knows nothing of events or work. A crash of the process loses nothing that was answered: the log is written ahead and
flushed with every commit. Tested in tests/conformance and tests/unit/stores/test_database.py.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from noetl.model.errors import InvalidInput, StoreUnavailable
from noetl.stores.queries import migrations, schema

Result = TypeVar("Result")
Task = tuple[Callable[[sqlite3.Connection], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]
_BUSY_S = 30.0  # how long another process may hold the file before we give up


class Database:
    """A connection that one thread owns."""

    def __init__(self, path: Path | str) -> None:
        self.path = str(path)
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._opened: SimpleQueue[BaseException | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="noetl-sqlite", daemon=True)
        self._closed = False
        self._thread.start()
        failure = self._opened.get()
        if failure is not None:
            self._closed = True
            raise failure

    async def run(self, job: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run a job in the thread and give its result."""
        if self._closed:
            raise StoreUnavailable(f"the store {self.path} is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._tasks.put((job, loop, future))
        return await future

    async def write(self, job: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run a job in a transaction that holds the file's write lock from its start."""

        def transaction(connection: sqlite3.Connection) -> Result:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = job(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return result

        return await self.run(transaction)

    async def close(self) -> None:
        """Finish what was asked, and close the file."""
        if not self._closed:
            self._closed = True
            self._tasks.put(None)
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _work(self) -> None:
        try:
            connection = connect(self.path)
        except (sqlite3.Error, InvalidInput, OSError) as error:
            self._opened.put(error if isinstance(error, InvalidInput) else _unavailable(self.path, error))
            return
        self._opened.put(None)
        while (task := self._tasks.get()) is not None:
            job, loop, future = task
            answer, failure = self._try(connection, job)
            with suppress(RuntimeError):  # the loop of the asker may have ended
                loop.call_soon_threadsafe(_answer, future, answer, failure)
        connection.close()

    def _try(
        self, connection: sqlite3.Connection, job: Callable[[sqlite3.Connection], Any]
    ) -> tuple[Any, BaseException | None]:
        try:
            return job(connection), None
        except sqlite3.OperationalError as error:
            return None, _unavailable(self.path, error)
        except BaseException as error:  # noqa: BLE001  whoever asked gets it; the thread goes on
            return None, error


def _answer(future: asyncio.Future[Any], answer: Any, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(answer)


def _unavailable(path: str, error: BaseException) -> StoreUnavailable:
    return StoreUnavailable(f"the store {path} cannot be used now: {error}")


def connect(path: str) -> sqlite3.Connection:
    """Open a file for one thread, with its tables up to date."""
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, cached_statements=256)
    try:
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")  # pages; a commit that moves them waits for the disk
        _bring_up_to_date(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to a write-ahead log; two processes that do so at once do not wait for each other by themselves."""
    until = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.005)


def _bring_up_to_date(connection: sqlite3.Connection, path: str) -> None:
    steps = migrations("sqlite")
    if _level(connection) == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        level = _level(connection)
        if level > len(steps):
            raise InvalidInput(
                f"{path} was written by a newer NoETL (level {level}, this one knows {len(steps)}). Use that version or "
                "another file."
            )
        todo = [schema("sqlite")] if level == 0 else steps[level:]
        for step in todo:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _level(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
