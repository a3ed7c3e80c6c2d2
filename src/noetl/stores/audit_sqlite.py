"""Writes down in a SQLite file who did something, in the transaction that does it.

Tested in tests/conformance/test_team.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from noetl.ports import AuditEntry
from noetl.stores.queries import queries

_SQL = queries("sqlite")


def note(connection: sqlite3.Connection, entries: Iterable[AuditEntry | None]) -> None:
    """Write acts down; nothing for None."""
    for entry in entries:
        if entry is not None:
            detail = msgspec.json.encode(entry.detail).decode()
            connection.execute(_SQL["put_audit"], (entry.at, entry.actor, entry.action, entry.entity, detail))
