"""Files of tasks, opened in the task's own thread, where its sandbox holds.

Tested in tests/confinement/test_inside.py.
"""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from noetl.ports.work import OwnThread

CONFINED = (
    "Tasks on this worker are confined: they do not read the worker's own files and write only to the folders in "
    "NOETL_SANDBOX_WRITE."
)


async def in_own_thread(thread: OwnThread, job: Callable[..., Any], *given: Any) -> Any:
    """Run a job on files; a PermissionError of the sandbox says what it allows."""
    try:
        return await thread.run(job, *given)
    except PermissionError as error:
        if thread.walls.is_open:
            raise
        raise PermissionError(error.errno, f"{error.strerror}. {CONFINED}", error.filename) from None


async def read_file(path: Path, thread: OwnThread) -> bytes:
    """Return the content of a file. Raises OSError."""
    data: bytes = await in_own_thread(thread, _read, path, thread.walls.is_open)
    return data


def _read(path: Path, is_open: bool) -> bytes:
    with open_file(path, is_open) as file:
        return file.read()


def open_file(path: Path, is_open: bool) -> BinaryIO:
    """Open a file for reading. Raises OSError.

    With a sandbox only a regular one: a pipe could belong to the worker, and would block the thread.
    """
    if is_open:
        return path.open("rb")
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "It is no regular file", str(path))
    return os.fdopen(fd, "rb")
