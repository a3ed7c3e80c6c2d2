"""One connection to a SQLite file: opens and migrates it, runs jobs in order.

A thread owns slow work, so the event loop never waits for the disk. Brief jobs run on the event loop as long as the disk is
fast, because handing them to the thread and back takes longer than they do. Knows nothing of events or work. A crash loses
nothing that was answered: the write-ahead log is flushed with every commit, and nothing is committed to a file that was
deleted or replaced more than a few milliseconds ago. Tested in tests/conformance and tests/unit/stores/sqlite/test_database.py.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from noetl.model.errors import InvalidInput, StoreUnavailable
from noetl.ports import Audit
from noetl.private_files import open_private
from noetl.stores.common.outage import Outage
from noetl.stores.common.queries import hash_of, migrations, queries, require_same, statements
from noetl.stores.sqlite.clock import FileClock
from noetl.stores.sqlite.rows import write_audit

Result = TypeVar("Result")
Job = Callable[[sqlite3.Connection], Result]
_BUSY_MS = 30_000  # how long to wait for the lock of another process
_BRIEF = 64  # rows whose statements and flush take about as long as handing them to the thread
_SHORT = 512  # rows whose statements block the event loop for a few milliseconds at most
_LONG_S = 0.001  # a brief job that takes longer blocked the event loop
_LARGE_S = 0.005  # of processor time, for the statements of brief jobs whose rows are large: so is their flush
_SLOW_IN_A_ROW = 8  # of these: the disk is slow, and not only this machine busy
_BACKOFF = 200  # times the duration of the last slow job, during which the thread takes all jobs
_RECHECK_S = 0.005  # how long the file is assumed to be in place after a check
_MOST_PAGES = 4_000  # in the write-ahead log before a commit has to checkpoint it, which takes long
_CHECKPOINT_EVERY = 256  # brief writes: the thread checkpoints, so that no commit has to
APPLICATION_ID = 0x4E6F4555  # marks a file with the numbering of migrations in `migrations/`
BACKUP_ID = 0x4E6F4562  # marks a backup, from which nothing continues before it is restored
_SQL = queries("sqlite")
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Database:
    """A connection that the event loop and one thread use in turns."""

    def __init__(self, path: Path | str, *, to_read: bool = False) -> None:
        self.path = str(path)
        self._to_read = to_read
        self._jobs: SimpleQueue[tuple[Job[Any], asyncio.AbstractEventLoop, asyncio.Future[Any]] | None] = SimpleQueue()
        self._opened: SimpleQueue[BaseException | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="noetl-sqlite", daemon=True)
        self._closed = False
        self._connection: sqlite3.Connection
        self._file: tuple[int, int] | None = None  # device and inode of the opened file; None: in memory
        self._pending = 0  # jobs of the thread that are not done
        self._unmoved = 0  # brief writes since the last checkpoint
        self._slow = 0  # slow brief jobs in a row
        self._slow_until = 0.0
        self._outage = Outage(self.path)
        self._checked_at = 0.0  # when the file was last seen in place
        self.clock = FileClock()
        self._thread.start()
        failure = self._opened.get()
        if failure is not None:
            self._closed = True
            raise failure

    def submit(self, job: Job[Result]) -> asyncio.Future[Result]:
        """Queue a job for the thread."""
        if self._closed:
            raise StoreUnavailable(f"the store {self.path} is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._pending += 1
        self._jobs.put((job, loop, future))
        return future

    async def run(self, job: Job[Result]) -> Result:
        """Run a job in the thread."""
        return await self.submit(job)

    async def read(self, job: Job[Result]) -> Result:
        """Run a brief job that only reads: at once if possible, else in the thread."""
        ran, result = self.try_read(job)
        return result if ran else await self.submit(job)

    def try_read(self, job: Job[Result]) -> tuple[bool, Any]:
        """Run a brief reading job if possible at once; return whether it ran, its result."""
        start = self._start()
        if start is None:
            return False, None
        try:
            result = job(self._connection)
        except sqlite3.Error:
            return False, None  # the thread waits for the lock, or reports the error
        self._note_duration(start)
        return True, result

    async def write(self, job: Job[Result]) -> Result:
        """Run a job in the thread, in a transaction that begins with the write lock."""
        return await self.submit(self._in_transaction(job))

    async def rows(self, name: str, *values: Any) -> list[Any]:
        """Run a statement by name that only reads, in the thread."""
        return await self.run(lambda connection: connection.execute(_SQL[name], values).fetchall())

    async def noted(self, act: Audit, name: str, *values: Any) -> int:
        """Run a statement by name; if it changes rows, audit it in its transaction."""

        def job(connection: sqlite3.Connection) -> int:
            count = connection.execute(_SQL[name], values).rowcount
            write_audit(connection, [act] if count else [])
            return count

        return await self.write(job)

    def write_rows(self, job: Job[Result], rows: int) -> Result | asyncio.Future[Result]:
        """Run a job that writes about `rows` rows, in a transaction.

        It runs at once if that is faster than using the thread. Returns the result of a brief job, which is durable.
        The statements of a short job run here and the thread flushes them: with two threads at work, each statement
        would wait for the interpreter lock. So does a job whose few rows were large: their statements took long. A long
        job, and every job while the thread or another process has the file, runs in the thread.
        """
        if rows <= _BRIEF and (start := self._start()) is not None and self._begin():
            busy = time.thread_time()
            result = self._run_statements(job)
            if time.thread_time() - busy > _LARGE_S:
                return self.submit(lambda connection: self._commit(connection, result))
            return self._commit_here(result, start)
        if rows <= _SHORT and not (self._pending or self._closed) and self._begin():
            result = self._run_statements(job)
            return self.submit(lambda connection: self._commit(connection, result))
        return self.submit(self._in_transaction(job))

    def _in_transaction(self, job: Job[Result]) -> Job[Result]:
        def transaction(connection: sqlite3.Connection) -> Result:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = job(connection)
            except BaseException:
                _roll_back(connection)
                raise
            return self._commit(connection, result)

        return transaction

    def _commit(self, connection: sqlite3.Connection, result: Result) -> Result:
        """Commit to a file that is still in place, or roll back."""
        try:
            self.check()
            connection.execute("COMMIT")
        except BaseException:
            _roll_back(connection)
            raise
        self._outage.end()  # reading proves nothing: it works on a full disk
        return result

    def _start(self) -> float | None:
        """Return the time if a job can run now: an idle thread, no slow disk; else None."""
        now = time.perf_counter()
        return None if self._pending or self._closed or now < self._slow_until else now

    def _begin(self) -> bool:
        """Begin a transaction, unless another process has the write lock."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False  # the thread waits for the lock, or reports the error
        return True

    def _run_statements(self, job: Job[Result]) -> Result:
        try:
            return job(self._connection)
        except BaseException as error:
            _roll_back(self._connection)
            if isinstance(error, sqlite3.DatabaseError):
                raise _explain(self.path, error) from error
            raise

    def _commit_here(self, result: Result, start: float) -> Result:
        try:
            self._commit(self._connection, result)
        except sqlite3.DatabaseError as error:
            raise _explain(self.path, error) from error
        self._note_duration(start)
        self._unmoved += 1
        if self._unmoved >= _CHECKPOINT_EVERY:
            self._unmoved = 0
            self.submit(_checkpoint).add_done_callback(_ignore_failure)
        return result

    def _note_duration(self, start: float) -> None:
        took = time.perf_counter() - start
        self._slow = self._slow + 1 if took > _LONG_S else 0
        if self._slow >= _SLOW_IN_A_ROW:
            self._slow_until, self._slow = start + _BACKOFF * took, 0

    def check(self) -> None:
        """Verify that the file still has its name, if due. Raises StoreUnavailable."""
        now = time.perf_counter()
        if self._file is None or now < self._checked_at + _RECHECK_S:
            return
        if not self._is_in_place():
            error = StoreUnavailable(
                f"the store {self.path} was deleted, moved or replaced while in use, so nothing can be written to it. Put "
                "the file and its -wal and -shm files back, or restart with a new store."
            )
            self._outage.begin(error)
            raise error
        self._checked_at = now

    def _is_in_place(self) -> bool:
        try:
            return self._file is None or _identity(self.path) == self._file
        except OSError:
            return False

    async def close(self) -> None:
        """Finish the queued jobs and close the file."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _serve(self) -> None:
        try:
            connection = connect(self.path, to_read=self._to_read)
            _run_with_wait(connection, self.clock.load if self._to_read else self.clock.open)
            self._file = None if self.path == ":memory:" else _identity(self.path)
        except (sqlite3.Error, InvalidInput, StoreUnavailable, OSError) as error:
            known = isinstance(error, InvalidInput | StoreUnavailable)
            self._opened.put(error if known else _unavailable(self.path, error))
            return
        self._connection = connection
        self._opened.put(None)
        while (task := self._jobs.get()) is not None:
            job, loop, future = task
            result, failure = self._run(connection, job)
            with suppress(RuntimeError):  # the event loop may have been closed
                loop.call_soon_threadsafe(self._resolve, future, result, failure)
        connection.close()

    def _run(self, connection: sqlite3.Connection, job: Job[Any]) -> tuple[Any, BaseException | None]:
        try:
            try:
                return job(connection), None
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                return _run_with_wait(connection, job), None
        except sqlite3.DatabaseError as error:
            return None, _explain(self.path, error)
        except BaseException as error:  # noqa: BLE001  the caller gets it; the thread continues
            return None, error

    def _resolve(self, future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
        self._pending -= 1
        if isinstance(failure, StoreUnavailable):
            self._outage.begin(failure)
        if future.done():  # cancelled
            return
        if failure is not None:
            future.set_exception(failure)
        else:
            future.set_result(result)


def _run_with_wait(connection: sqlite3.Connection, job: Job[Result]) -> Result:
    """Run a job again that found the file locked and did nothing; wait for the lock."""
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    try:
        return job(connection)
    finally:
        connection.execute("PRAGMA busy_timeout = 0")


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _checkpoint(connection: sqlite3.Connection) -> None:
    """Move the write-ahead log into the file, as far as no reader needs it."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _ignore_failure(future: asyncio.Future[None]) -> None:
    """Retrieve the error of a checkpoint: the next one tries again."""
    if not future.cancelled():
        future.exception()


def _explain(path: str, error: sqlite3.DatabaseError) -> Exception:
    """Return StoreUnavailable for a trouble with the file; any other error as it is."""
    is_file = isinstance(error, sqlite3.OperationalError) or _code(error) in _DAMAGED
    return _unavailable(path, error) if is_file else error


def _unavailable(path: str, error: BaseException) -> StoreUnavailable:
    code = _code(error)
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreUnavailable(
            f"the store {path} is damaged: {error}. Keep the file and restore a backup; if only tables beside the log are "
            "damaged, `noetl admin rebuild` makes them again."
        )
    if code == sqlite3.SQLITE_NOTADB:
        return StoreUnavailable(
            f"{path} is not a NoETL store, or its header is damaged: {error}. Name another file with `--store`, or restore "
            "a backup."
        )
    if code == sqlite3.SQLITE_READONLY:
        return _read_only(path)
    return StoreUnavailable(f"the store {path} is unavailable: {error}")


def _read_only(path: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"the store {path} is read-only, so nothing can be written to it. Make the file and its folder writable, or name "
        "another file with `--store`."
    )


def _code(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def connect(path: str, *, to_read: bool = False) -> sqlite3.Connection:
    """Open a file and migrate it. One thread at a time may use the connection.

    Only a caller that does not write gets a file that cannot be written, as it is.
    """
    if os.path.exists(path) and not _is_writable(path):
        if to_read:
            return _connect_read_only(path)
        raise _read_only(path)
    if path != ":memory:" and not os.path.exists(path):
        with suppress(OSError):  # SQLite reports it; its other files get the permissions of this one
            os.close(open_private(path))
    connection = _connect(path)
    try:
        _enable_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_MOST_PAGES}")
        _migrate(connection, path, to_read=to_read)
        connection.execute("PRAGMA busy_timeout = 0")  # only the thread of a database waits for a lock
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        path, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False, cached_statements=256, uri=uri
    )


def _is_writable(path: str) -> bool:
    """Return whether a file and its folder, for the write-ahead log, may be written."""
    return os.access(path, os.W_OK) and os.access(os.path.dirname(os.path.abspath(path)), os.W_OK)


def _connect_read_only(path: str) -> sqlite3.Connection:
    """Open a file that cannot be written, with what is in its write-ahead log.

    SQLite reads such a log only if its index, the file `-shm`, is there too; else a copy is read.
    """
    log, index = Path(path + "-wal"), Path(path + "-shm")
    if not log.exists() or not log.stat().st_size:
        connection = _connect(f"{Path(path).absolute().as_uri()}?immutable=1", uri=True)
    elif index.exists():
        connection = _connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
    else:
        with tempfile.TemporaryDirectory() as folder:
            for file in (Path(path), log):
                shutil.copyfile(file, Path(folder, file.name))
            connection = _connect(str(Path(folder, Path(path).name)))
            connection.execute("PRAGMA user_version").fetchone()  # opens all files, which can be removed then
    try:
        connection.execute("PRAGMA query_only = ON")
        steps, level = migrations("sqlite"), _level(connection, path, to_read=True)
        if level != len(steps):
            raise InvalidInput(
                f"The read-only store {path} has schema level {level}; this version of NoETL reads level {len(steps)}. Open "
                "a copy that can be written, or use another version of NoETL."
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _enable_wal(connection: sqlite3.Connection) -> None:
    """Switch to a write-ahead log; SQLite does not wait for another process, so retry."""
    until = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.005)


def _migrate(connection: sqlite3.Connection, path: str, *, to_read: bool) -> None:
    """Apply pending migrations in one transaction. Raises InvalidInput if unusable."""
    steps = migrations("sqlite")
    if _level(connection, path, to_read=to_read) == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        level = _level(connection, path)
        if level > len(steps):
            raise InvalidInput(
                f"{path} was written by a newer version of NoETL (schema level {level}; this version supports {len(steps)}). "
                "Use that version, or name another file with `--store`."
            )
        for number, (text, title) in enumerate(steps[level:], level + 1):
            for statement in statements(text):
                connection.execute(statement)
            connection.execute(_SQL["put_migration"], (number, title, hash_of(text)))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _level(connection: sqlite3.Connection, path: str, *, to_read: bool = False) -> int:
    """Count the applied migrations. Raises InvalidInput if they are others."""
    level = int(connection.execute("PRAGMA user_version").fetchone()[0])
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    if mark == BACKUP_ID and not to_read:
        raise InvalidInput(
            f"{path} is a backup, so its work in flight may have had its effects already. Restore it with "
            f"`noetl admin restore {path}`, which holds that work for review."
        )
    if level and mark not in (APPLICATION_ID, BACKUP_ID):
        raise InvalidInput(
            f"{path} was written by a development version of NoETL and cannot be migrated. Move the file away to start with "
            "an empty store, or name another file with `--store`."
        )
    if level:
        rows = connection.execute(_SQL["read_migrations"]).fetchall()
        require_same(path, [row[0] for row in rows], migrations("sqlite"))
    return level
