"""File with the master keys of the SQLite stores of one folder.

The first key wraps, all of them unwrap. A rotation of one store puts a new key in front; an older one is removed only when
no other store of the folder has a data key that it wraps, so a rotation that is killed at any point loses nothing. Tested
in tests/server/auth/test_rotation.py.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Final

from noetl.model.errors import InvalidInput
from noetl.private_files import lock_private, open_private, write_private

_WAIT_S: Final = 5.0  # for a store that another process holds

_log = logging.getLogger(__name__)


class KeyFile:
    """The key file beside a store. `path` has the keys, separated by commas."""

    def __init__(self, store: Path) -> None:
        self.path = store.with_name("key")
        self._store = store

    def create(self, key: str) -> None:
        """Write a first key, unless there is a file."""
        with suppress(FileExistsError), open(open_private(self.path, os.O_WRONLY | os.O_EXCL), "w") as file:
            file.write(key)

    def read(self) -> str:
        """Return the keys, the newest first. Raises InvalidInput."""
        try:
            return self.path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise InvalidInput(
                f"Cannot read the key of credentials, {self.path}: {why}. Restore it from a backup."
            ) from None

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Keep other processes from changing the file, and from wrapping a first data key."""
        with await asyncio.to_thread(lock_private, self.path.with_name("key.lock")):
            yield

    def put_first(self, key: str) -> None:
        """Add a key that wraps from now on."""
        write_private(self.path, f"{key},{self.read()}")

    def drop_unneeded(self, mark_of: Callable[[str], bytes]) -> list[str]:
        """Remove older keys that no other store needs; return the stores that need one."""
        first, *older = self.read().split(",")
        users = {key: _users(mark_of(key), needed_marks(self._store, len(mark_of(key)))) for key in older}
        write_private(self.path, ",".join([first, *(key for key in older if users[key])]))
        if found := sorted({str(path) for paths in users.values() for path in paths}):
            _log.warning(
                "%s keeps an older key, which %s may need. To remove it, run `noetl key rotate --store FILE` for each.",
                self.path,
                ", ".join(found),
            )
        return found


def _users(mark: bytes, needed: Mapping[Path, set[bytes] | None]) -> list[Path]:
    return [path for path, marks in needed.items() if marks is None or mark in marks]


def needed_marks(store: Path, length: int) -> dict[Path, set[bytes] | None]:
    """Return the other stores of a folder, and the master keys that each needs.

    None: the file cannot be read, so it may need any. Stores without a data key are left out.
    """
    found: dict[Path, set[bytes] | None] = {}
    for path in store.parent.iterdir():
        if path.is_file() and not (store.exists() and path.samefile(store)):
            marks = _marks(path, length)
            if marks is None or marks:
                found[path] = marks
    return found


def _marks(path: Path, length: int) -> set[bytes] | None:
    # It is opened by SQLite only: else closing it would release the locks that this process has on it. With `mode=ro`, the
    # files of a write-ahead log would stay.
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=_WAIT_S)) as store:
            if store.execute("SELECT 1 FROM sqlite_master WHERE name = 'data_key'").fetchone() is None:
                return set()
            return {bytes(row[0])[:length] for row in store.execute("SELECT wrapped FROM data_key")}
    except sqlite3.Error as error:
        return set() if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB else None
