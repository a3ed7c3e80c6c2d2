"""The clock of a SQLite file: all processes on a file share its offset.

A process that opens the file, or finds that the system clock was set, adopts the system clock as soon as nothing in the file
has a deadline. Until then time goes on evenly, also over restarts, so leases and waits keep their duration. After a reboot
the system clock decides how long the machine was down; time only never goes back while executions are open, and leases of
before last a usual lease at most. Tested in tests/unit/stores/sqlite/test_clock.py.
"""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from noetl.clock import STEP_MS, SteadyClock, system_offset, uptime
from noetl.model.events import Event
from noetl.stores.common.queries import queries

_SQL = queries("sqlite")
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_EVERY_MS: Final = 1_000  # between two attempts to adopt the system clock
_LEASE_MS: Final = 30_000
_TIMESTAMP = Event.__struct_fields__.index("timestamp")


class FileClock(SteadyClock):
    """Clock of a file; it follows the system clock when nothing has a deadline."""

    def __init__(self) -> None:
        super().__init__()
        self._seen = self.offset  # of the system clock, when it was last adopted or found changed
        self._is_open = False  # a change of the system clock waits until nothing has a deadline
        self._tried_at = 0

    def open(self, connection: sqlite3.Connection) -> None:
        """Adopt the file's offset, or set it. Begins its own transaction if it writes."""
        if self._adopts(connection):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            self.align(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def load(self, connection: sqlite3.Connection) -> None:
        """Adopt an offset that another process has set."""
        row = connection.execute(_SQL["read_clock"]).fetchone()
        if row is not None and row[0] != self.offset:
            self.set_offset(row[0])
            self._is_open = False

    def wants_to_align(self) -> bool:
        """Return whether the system clock was set and may be adopted now."""
        if abs(system_offset() - self._seen) > STEP_MS:
            self._seen, self._is_open = system_offset(), True
        self.watch()
        return self._is_open and uptime() - self._tried_at >= _EVERY_MS

    def _adopts(self, connection: sqlite3.Connection) -> bool:
        """Adopt the file's offset if it is right, or cannot be changed now."""
        row, boot = connection.execute(_SQL["read_clock"]).fetchone(), _boot()
        if row is None or row[1] != boot:
            return False
        self._is_open = abs(row[0] - system_offset()) > STEP_MS
        if self._is_open and (not boot or _is_quiet(connection)):
            return False
        self.set_offset(row[0])
        return True

    def align(self, connection: sqlite3.Connection) -> None:
        """Adopt the system clock if nothing has a deadline; inside a transaction."""
        self._tried_at = uptime()
        if self._adopts(connection):
            return
        offset = system_offset()
        if not _is_quiet(connection):  # the machine was down
            offset = max(offset, _newest(connection) - uptime())
            connection.execute(_SQL["shorten_leases"], (uptime() + offset + _LEASE_MS,))
        connection.execute(_SQL["put_clock"], (offset, _boot()))
        connection.execute(_SQL["end_duties"])
        self.set_offset(offset)
        self._seen = system_offset()
        self._is_open = abs(offset - self._seen) > STEP_MS


def _is_quiet(connection: sqlite3.Connection) -> bool:
    """Return whether nothing in the file has a deadline."""
    return bool(connection.execute(_SQL["has_no_deadline"]).fetchone()[0])


def _newest(connection: sqlite3.Connection) -> int:
    """Return the time of the last event in the file."""
    row = connection.execute(_SQL["last_events"]).fetchone()
    return 0 if row is None else int(msgspec.json.decode(row[0])[-1][_TIMESTAMP])


def _boot() -> str:
    """Return the id of this boot; empty where the system has none."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
