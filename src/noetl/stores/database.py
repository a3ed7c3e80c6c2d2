"""One SQLite connection: opens it, brings its tables up to date, runs what is asked in order.

It has a thread of its own, so nobody waits for the disk. Brief jobs are done by whoever asks, while the disk is quick:
handing over to a thread and back takes longer than they do. Of longer ones the thread does what waits for the disk. Knows
nothing of events or work. A crash of the process loses nothing that was answered: the log is written ahead and flushed with
every commit, and nothing is committed to a file that was deleted or replaced more than a moment ago. Tested in
tests/conformance and tests/unit/stores/test_database.py.
"""

from __future__ import annotations

import asyncio
import os
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
Task = tuple[Callable[[sqlite3.Connection], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any] | None"]
_BUSY_MS = 30_000  # how long another process may hold the file before we give up
_LONG_S = 0.001  # a brief write that took longer held up the event loop
_JUST_NOW_S = 0.005  # commits come much faster than anybody deletes a file
_MOST_LONG = 8  # of them in a row: the disk is slow, and not only this machine busy
_RESPITE = 200  # for so many times as long, the thread writes
_MOST_PAGES = 4_000  # of the write-ahead log, before they are moved into the file; the commit that does it takes long
_MOST_BRIEF = 256  # brief writes before the thread moves the pages, so that none of them has to
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Database:
    """A connection that one event loop and one thread take turns with."""

    def __init__(self, path: Path | str) -> None:
        self.path = str(path)
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._opened: SimpleQueue[BaseException | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="noetl-sqlite", daemon=True)
        self._closed = False
        self._connection: sqlite3.Connection
        self._file: tuple[int, int] | None = None  # which one was opened; None: it is in memory
        self._handed = 0  # to the thread, and not answered
        self._brief = 0  # writes since the pages were moved
        self._long = 0  # ones in a row
        self._slow_until = 0.0
        self._seen = 0.0  # when the file was last known to be there
        self._thread.start()
        failure = self._opened.get()
        if failure is not None:
            self._closed = True
            raise failure

    async def run(self, job: Callable[[sqlite3.Connection], Result], brief: bool = False) -> Result:
        """Run a job in the thread and give its result; a `brief` one, which only reads, here and now where that is quick."""
        if brief and (start := self._quick()) is not None:
            try:
                result = job(self._connection)
            except sqlite3.Error:
                pass  # the thread waits for another process, or finds out what is wrong
            else:
                self._note_time(start)
                return result
        if self._closed:
            raise StoreUnavailable(f"the store {self.path} is closed")
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._hand_over(job, future)
        return await future

    async def write(
        self, job: Callable[[sqlite3.Connection], Result], brief: bool = False, short: bool = False
    ) -> Result:
        """Run a job in a transaction that holds the file's write lock from its start.

        A `brief` one is done here and now where that is quick. The statements of a `short` one are run here, where nobody
        else has the connection, and the thread only flushes them: both of them running would take turns at every statement.
        """
        if brief and (start := self._begun()) is not None:
            return self._write_here(job, start)
        if short and not (self._handed or self._closed) and self._begin():
            return await self._flushed_apart(job)

        def transaction(connection: sqlite3.Connection) -> Result:
            connection.execute("BEGIN IMMEDIATE")
            return _finish(connection, job, self.check)

        return await self.run(transaction)

    def read_now(self, job: Callable[[sqlite3.Connection], Result]) -> Result | None:
        """Run a brief job that only reads, where that is quick; None: it cannot be now."""
        start = self._quick()
        if start is None:
            return None
        try:
            result = job(self._connection)
        except sqlite3.Error:
            return None
        self._note_time(start)
        return result

    def write_at_once(self, job: Callable[[sqlite3.Connection], Result]) -> Result | None:
        """Run a brief job in a transaction here and now, where that is quick; None: it cannot be, and nothing was done."""
        start = self._begun()
        return None if start is None else self._write_here(job, start)

    def _begun(self) -> float | None:
        """Begin a transaction here and now, where that is quick, and give the time."""
        now = self._quick()
        return now if now is not None and self._begin() else None

    def _begin(self) -> bool:
        """Begin a transaction here and now; not while another process writes."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False  # the thread waits for the other process, or finds out what is wrong
        return True

    def _quick(self) -> float | None:
        """Give the time, where a brief job can be done now: the thread has nothing to do, and the disk is not slow."""
        now = time.perf_counter()
        return None if self._handed or self._closed or now < self._slow_until else now

    def _note_time(self, start: float) -> None:
        took = time.perf_counter() - start
        if took <= _LONG_S:
            self._long = 0
            return
        self._long += 1
        if self._long >= _MOST_LONG:
            self._slow_until, self._long = start + _RESPITE * took, 0

    def _write_here(self, job: Callable[[sqlite3.Connection], Result], start: float) -> Result:
        try:
            result = _finish(self._connection, job, self.check)
        except sqlite3.DatabaseError as error:
            raise _told(self.path, error) from error
        self._note_time(start)
        self._brief += 1
        if self._brief >= _MOST_BRIEF:
            self._brief = 0
            self._hand_over(_move_pages, None)
        return result

    async def _flushed_apart(self, job: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run a job in the transaction that has begun, and let the thread commit it."""
        try:
            result = job(self._connection)
        except BaseException as error:
            _undo(self._connection)
            if isinstance(error, sqlite3.DatabaseError):
                raise _told(self.path, error) from error
            raise
        await self.run(self._commit)
        return result

    def _commit(self, connection: sqlite3.Connection) -> None:
        _finish(connection, _nothing, self.check)

    def _hand_over(self, job: Callable[[sqlite3.Connection], Any], future: asyncio.Future[Any] | None) -> None:
        self._handed += 1
        self._tasks.put((job, asyncio.get_running_loop(), future))

    def check(self) -> None:
        """Tell whether the file that was opened is still the one of this name, if it was not just now.

        Raises StoreUnavailable.
        """
        now = time.perf_counter()
        if self._file is None or now < self._seen + _JUST_NOW_S:
            return
        try:
            is_same = _place(self.path) == self._file
        except OSError:
            is_same = False
        if not is_same:
            raise StoreUnavailable(
                f"the store {self.path} was deleted, moved or replaced while it was in use, so nothing more can be kept in "
                "it. Put the file back, with those beside it, or start anew."
            )
        self._seen = now

    async def close(self) -> None:
        """Finish what was asked, and close the file."""
        if not self._closed:
            self._closed = True
            self._tasks.put(None)
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _work(self) -> None:
        try:
            connection = connect(self.path)
            self._file = None if self.path == ":memory:" else _place(self.path)
        except (sqlite3.Error, InvalidInput, OSError) as error:
            self._opened.put(error if isinstance(error, InvalidInput) else _unavailable(self.path, error))
            return
        self._connection = connection
        self._opened.put(None)
        while (task := self._tasks.get()) is not None:
            job, loop, future = task
            answer, failure = self._try(connection, job)
            with suppress(RuntimeError):  # the loop of the asker may have ended
                loop.call_soon_threadsafe(self._answer, future, answer, failure)
        connection.close()

    def _try(
        self, connection: sqlite3.Connection, job: Callable[[sqlite3.Connection], Any]
    ) -> tuple[Any, BaseException | None]:
        try:
            try:
                return job(connection), None
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                return _patiently(connection, job), None
        except sqlite3.DatabaseError as error:
            return None, _told(self.path, error)
        except BaseException as error:  # noqa: BLE001  whoever asked gets it; the thread goes on
            return None, error

    def _answer(self, future: asyncio.Future[Any] | None, answer: Any, failure: BaseException | None) -> None:
        self._handed -= 1
        if future is None or future.done():
            return
        if failure is not None:
            future.set_exception(failure)
        else:
            future.set_result(answer)


def _patiently(connection: sqlite3.Connection, job: Callable[[sqlite3.Connection], Result]) -> Result:
    """Run a job that found the file locked, and nothing done, again: now it waits for the other process."""
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    try:
        return job(connection)
    finally:
        connection.execute("PRAGMA busy_timeout = 0")


def _finish(
    connection: sqlite3.Connection, job: Callable[[sqlite3.Connection], Result], check: Callable[[], None]
) -> Result:
    """Run a job in the transaction that has begun, and commit it to a file that is there."""
    try:
        result = job(connection)
        check()
        connection.execute("COMMIT")
    except BaseException:
        _undo(connection)
        raise
    return result


def _nothing(connection: sqlite3.Connection) -> None:
    """Add nothing to a transaction."""


def _undo(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _place(path: str) -> tuple[int, int]:
    """Tell which file has a name now."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _move_pages(connection: sqlite3.Connection) -> None:
    """Move what was written ahead into the file, as far as nobody reads it there."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _told(path: str, error: sqlite3.DatabaseError) -> Exception:
    """Give what is said of a statement that failed; one that is wrong in itself stays what it is."""
    is_file = isinstance(error, sqlite3.OperationalError) or _code(error) in _DAMAGED
    return _unavailable(path, error) if is_file else error


def _unavailable(path: str, error: BaseException) -> StoreUnavailable:
    code = _code(error)
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreUnavailable(
            f"the store {path} is damaged: {error}. Keep the file and put back a backup; where only tables beside the log "
            "are damaged, `noetl admin rebuild` makes them again."
        )
    if code == sqlite3.SQLITE_NOTADB:
        return StoreUnavailable(
            f"{path} is no store of NoETL, or its beginning is damaged: {error}. Name another file with `--store`, or put "
            "back a backup."
        )
    return StoreUnavailable(f"the store {path} cannot be used now: {error}")


def _code(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def connect(path: str) -> sqlite3.Connection:
    """Open a file, with its tables up to date; whoever uses the connection sees to it that nobody else does."""
    connection = sqlite3.connect(
        path, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_MOST_PAGES}")
        _bring_up_to_date(connection, path)
        connection.execute("PRAGMA busy_timeout = 0")  # only the thread of a database waits
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to a write-ahead log; two processes that do so at once do not wait for each other by themselves."""
    until = time.monotonic() + _BUSY_MS / 1000
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
        _undo(connection)
        raise


def _level(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
