"""Backups of a SQLite store: files with a mark, so that none is continued.

Tested in tests/acceptance/admin/test_restore.py.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from noetl.model.errors import InvalidInput
from noetl.private_files import make_private_folder, open_private
from noetl.stores.sqlite.database import APPLICATION_ID, BACKUP_ID, Database

_LOGS: Final = ("-wal", "-shm", "-journal")  # of SQLite, beside a file
_MARK: Final = slice(68, 72)  # application id in the header of a file


async def write_backup(database: Database, path: Path) -> None:
    """Write a consistent copy of a store in use to a new file, marked as a backup."""
    if path.exists():
        raise InvalidInput(f"{path} exists already. Name a new file for the backup.")
    part = path.with_name(path.name + ".part")
    try:
        make_private_folder(path.parent)
        part.unlink(missing_ok=True)
        os.close(open_private(part))  # an empty file, which SQLite fills
        await database.run(lambda connection: connection.execute("VACUUM INTO ?", (str(part),)))
        _mark(part, BACKUP_ID)
        os.replace(part, path)
    except OSError as error:
        raise InvalidInput(f"the backup {path} cannot be written: {error.strerror}.") from None


def is_backup(path: Path) -> bool:
    """Return whether a file is marked as a backup; a log beside it counts for nothing."""
    with path.open("rb") as file:
        return file.read(_MARK.stop)[_MARK] == BACKUP_ID.to_bytes(4, "big")


def refuse_other_log(path: Path) -> None:
    """Refuse to put a store where the log of another one would be replayed into it."""
    found = [name for name in _LOGS if Path(f"{path}{name}").exists()]
    if found:
        logs = " and ".join(f"{path}{name}" for name in found)
        raise InvalidInput(f"{logs} would be replayed into the restored store. Move the whole old store away first.")


def copy_store(source: Path, target: Path) -> None:
    """Copy a backup, or a store that no process uses, as a store that can continue."""
    for name in ("", *_LOGS):
        Path(f"{target}{name}").unlink(missing_ok=True)
    os.close(open_private(target))
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
    _mark(target, APPLICATION_ID)


def _mark(path: Path, number: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA application_id = {number}")
