"""Lock files of processes: drivers of local executions, and workers of `noetl up`.

The operating system releases a lock when the process dies. The file of a worker stays if its process was killed, so that the
next process knows that the leases of that worker are dead. Tested in tests/acceptance/executions/test_run_resume.py and
tests/acceptance/servers/test_up_killed.py.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, TextIO

from noetl.cli.runtime.store import local_settings
from noetl.cli.runtime.target import server_of
from noetl.model.errors import Conflict, InvalidInput
from noetl.private_files import make_private_folder, open_private
from noetl.settings import Settings

if TYPE_CHECKING:
    from noetl.engine.state.execution import Execution

_TIMEOUT_S: Final = 2.0  # child processes of a killed driver keep the lock for less than this
_RETRY_S: Final = 0.02


@contextmanager
def driver_lock(settings: Settings, execution_id: str) -> Iterator[None]:
    """Hold the driver's lock. Raises Conflict while another process holds it."""
    with _lock(
        settings.locks / execution_id,
        f"is driving execution {execution_id}. Stop it with `noetl cancel {execution_id}`.",
    ):
        yield


@contextmanager
def worker_lock(settings: Settings, worker: str) -> Iterator[None]:
    """Hold the lock of a worker in this process. Raises Conflict if it is taken.

    Where no lock file can be written, there is none: after a kill, its leases last until they are not renewed.
    """
    try:
        make_private_folder(settings.workers)
    except OSError:
        yield
        return
    if not os.access(settings.workers, os.W_OK):
        yield
        return
    with _lock(settings.workers / worker, f"runs the worker {worker} on this store. Stop it first."):
        yield


def killed_workers(settings: Settings, host: str) -> list[str]:
    """Return workers of a machine that were killed: no process has their lock.

    A live worker of this name here, which holds its lock, is not among them. Child processes of a killed one keep its
    lock for a moment.
    """
    if not settings.workers.is_dir():
        return []
    found = []
    for path in sorted(settings.workers.glob(f"{escape(host)}:*")):
        file = _try_lock(path, shared=True)
        if file is not None:
            file.close()
            found.append(path.name)
    return found


def forget_worker(settings: Settings, worker: str) -> None:
    """Remove the lock file of a killed worker whose leases were taken back."""
    (settings.workers / worker).unlink(missing_ok=True)


@contextmanager
def _lock(path: Path, conflict: str) -> Iterator[None]:
    try:
        make_private_folder(path.parent)
    except OSError as error:
        raise InvalidInput(
            f"Cannot create the folder {path.parent}: {error.strerror}. Use another store with --store PATH."
        ) from None
    deadline = monotonic() + _TIMEOUT_S
    while (file := _try_lock(path)) is None:
        if monotonic() > deadline:
            raise Conflict(f"Process {_read_pid(path)} {conflict}")
        sleep(_RETRY_S)
    with file:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def root_of(state: Execution) -> str:
    """Return the execution whose driver does the work: itself, or the root of a child."""
    return state.pool.removeprefix("local:") if state.pool.startswith("local:") else state.execution_id


def driver_of(place: str | None, state: Execution) -> str | None:
    """Return the PID that drives an execution on this machine, or None."""
    return None if server_of(place) is not None else lock_holder(local_settings(place), root_of(state))


def lock_holder(settings: Settings, execution_id: str) -> str | None:
    """Return the PID that holds an execution's lock, or None."""
    path = settings.locks / execution_id
    if not path.exists():
        return None
    file = _try_lock(path, shared=True)
    if file is None:
        return _read_pid(path)
    file.close()
    return None


def _try_lock(path: Path, *, shared: bool = False) -> TextIO | None:
    """Open and lock a file; None if another process holds it or has just deleted it."""
    try:
        if shared:  # a file that is only looked at may be read-only
            file = path.open("r", encoding="ascii")
        else:
            file = open(open_private(path, os.O_RDWR | os.O_APPEND), "a+", encoding="ascii")  # noqa: SIM115 - the caller closes it
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    file.close()
    return None


def _read_pid(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip() or "unknown"
    except OSError:
        return "unknown"
