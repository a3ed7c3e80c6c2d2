"""Rows of the SQLite store. Tested in tests/conformance."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from noetl.audit.chain import Head, extend
from noetl.model.events import Event
from noetl.model.messages import AnyMessage
from noetl.model.work import WorkItem
from noetl.ports import AuditEntry
from noetl.stores.common.audit_rows import content_row
from noetl.stores.common.batch import about, slot_columns
from noetl.stores.common.queries import queries
from noetl.stores.common.work_limits import limits_text

_SQL = queries("sqlite")
_encode = msgspec.json.encode
# Namespaces as JSON. `json_each` has a column `path` of its own, which the subquery hides.
WITHIN = "EXISTS (SELECT 1 FROM (SELECT value FROM json_each(?)) WHERE substr(path, 1, length(value)) = value)"
_decode = msgspec.json.decode


def text(value: Any) -> str:
    """Encode a value as JSON."""
    return _encode(value).decode()


def namespaces(within: Sequence[str] | None) -> str | None:
    """Encode namespaces for a statement; None: everywhere."""
    return None if within is None else text(list(within))


def log_row(events: Sequence[Event]) -> tuple[Any, ...]:
    """Return the row of events that were committed together."""
    last = events[-1]
    return (last.execution_id, last.seq, len(events), events[0].event_id, text(list(map(astuple, events))))


def execution_row(execution_id: str, projection: Mapping[str, Any]) -> tuple[Any, ...]:
    path, parent, tags, started_at = about(projection)
    status = str(projection.get("status", "pending"))
    slot = slot_columns(projection)
    return (status, text(projection), *slot, execution_id, path, parent, text(tags) if tags else "[]", started_at)


def projection_of(row: Sequence[Any]) -> dict[str, Any]:
    """Return an execution as the port does, from (execution_id, last_seq, projection)."""
    return {**_decode(row[2]), "execution_id": row[0], "last_seq": row[1] or 0}


def work_row(item: WorkItem, born: int, encoded: str) -> tuple[Any, ...]:
    """Return the row of a work item, without its lease; `encoded` is the item as JSON."""
    chunk = None if item.chunk is None else item.chunk.chunk_id
    requires = text(sorted(set(item.requires))) if item.requires else ""
    order = (item.pool, requires, item.priority, item.available_at, born)
    return (item.work_id, item.execution_id, item.run_id, chunk, *order, encoded, item.flow, limits_text(item))


def message_row(execution_id: str, message: AnyMessage) -> tuple[str, str, str]:
    return (message.message_id, execution_id, text(message))


def write_audit(connection: sqlite3.Connection, entries: Iterable[AuditEntry | None]) -> None:
    """Append entries to the audit trail in the open transaction, skipping None.

    The transaction holds the write lock of the file, so the entries are linked to the chain at once.
    """
    given = [entry for entry in entries if entry is not None]
    if not given:
        return
    head, last = read_audit_head(connection)
    rows = [content_row(entry) for entry in given]
    numbered = (replace(entry, number=number) for number, entry in enumerate(given, last + 1))
    chained, head = extend(head, zip(numbered, (row[-1] for row in rows), strict=True))
    for one, row in zip(chained, rows, strict=True):
        connection.execute(_SQL["put_audit"], (one.entry.number, *row, one.position, one.previous, one.hash))
    connection.execute(_SQL["set_audit_head"], (head.position, head.hash))


def read_audit_head(connection: sqlite3.Connection) -> tuple[Head, int]:
    """Return the end of the chain of audit entries, and the last number."""
    position, found, last = connection.execute(_SQL["find_audit_head"]).fetchone()
    return Head() if position is None else Head(position, found), last or 0
