"""Files and folders that only their owner can use, whatever the umask.

The store, its write-ahead log, stored results, keys, tokens and contexts are created here. What exists already keeps its
permissions. Tested in tests/unit/test_private_files.py and tests/acceptance/servers/test_permissions.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO

_FILE = 0o600
_FOLDER = 0o700


def open_private(path: Path | str, flags: int = os.O_RDWR) -> int:
    """Open a file; create a missing one for its owner only. Returns the descriptor."""
    try:
        opened = os.open(path, flags | os.O_CREAT | os.O_EXCL, _FILE)
    except FileExistsError:  # or a link to a missing file
        return os.open(path, flags | os.O_CREAT, _FILE)
    os.fchmod(opened, _FILE)
    return opened


def lock_private(path: Path) -> BinaryIO:
    """Wait for the exclusive lock of a file, which is held until the file is closed."""
    import fcntl  # only where a lock is needed

    file = open(open_private(path), "r+b")  # noqa: SIM115 - the caller closes it
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically with one that only its owner can read."""
    make_private_folder(path.parent)
    opened, temporary = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        os.fchmod(opened, _FILE)
        with open(opened, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(opened)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def make_private_folder(path: Path) -> None:
    """Create a folder and its missing parents for their owner only."""
    if not path.is_dir():
        if path.parent != path:
            make_private_folder(path.parent)
        try:
            path.mkdir(mode=_FOLDER)
        except FileExistsError:
            if not path.is_dir():
                raise
            return  # another process was faster
        path.chmod(_FOLDER)
