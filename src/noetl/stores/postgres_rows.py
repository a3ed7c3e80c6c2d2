"""Rows of the PostgreSQL store, from and to what they stand for.

Execution ids are numbers there; a text that is none is the id of nothing. JSON goes in and comes out as text, so what is
read is what was written. Tested by tests/conformance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import astuple

from noetl.model.errors import InvalidInput
from noetl.model.events import Event
from noetl.model.messages import AnyMessage
from noetl.model.work import Lease, WorkItem
from noetl.ports import AuditEntry, Claim, Position
from noetl.stores.batch import about

_encode = msgspec.json.encode
_decode = msgspec.json.decode
_message = msgspec.json.Decoder(AnyMessage)
_work = msgspec.json.Decoder(WorkItem)
_LARGEST = 2**63 - 1


@lru_cache(4_096)
def number(execution_id: str) -> int | None:
    """Give the number of an execution; None for a text that names none."""
    if not (execution_id.isascii() and execution_id.isdecimal()) or len(execution_id) > 19:
        return None
    found = int(execution_id)
    return found if found <= _LARGEST and str(found) == execution_id else None


def numbered(execution_id: str) -> int:
    """Give the number of an execution that is about to be written."""
    found = number(execution_id)
    if found is None:
        raise InvalidInput(f"an execution id is a whole number below 2**63, and this is {execution_id!r}")
    return found


def text(value: Any) -> str:
    return _encode(value).decode()


def audit_columns(entries: Sequence[AuditEntry]) -> list[list[Any]]:
    """Give acts as the columns that they are handed over in."""
    rows = [(one.at, one.actor, one.action, one.entity, text(one.detail)) for one in entries]
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], [], []]


def event_rows(logs: Sequence[Sequence[Event]]) -> list[tuple[Any, ...]]:
    """Give the events of commits, each of one execution, as rows."""
    rows = []
    for events in logs:
        execution_id = numbered(events[0].execution_id)
        for event in events:
            event_id, _, seq, *middle, payload, version = astuple(event)
            rows.append((execution_id, seq, event_id, *middle, _encode(payload).decode(), version))
    return rows


def events_of(rows: Sequence[Sequence[Any]]) -> list[Event]:
    return [
        Event(*row[:15], _decode(row[15]), row[16])  # type: ignore[call-arg]  # fifteen, and two: all there are
        for row in rows
    ]


def position_of(row: Sequence[Any]) -> Position:
    return Position(row[0], row[1], events_of((row[2:],))[0])


def execution_row(
    execution_id: str, expected: int, seq: int, projection: Mapping[str, Any] | None
) -> tuple[int, int, int, Any, Any, Any, Any, Any, Any, Any, Any]:
    if projection is None:
        return (numbered(execution_id), expected, seq, None, None, None, None, None, None, None, None)
    error = projection.get("error")
    message = str(error.get("message") or "").replace("\0", "") if isinstance(error, Mapping) else None
    status = str(projection.get("status", "pending"))
    ended_at = projection.get("ended_at")
    return (
        numbered(execution_id), expected, seq, status, *about(projection), ended_at, message, text(projection),
    )  # fmt: skip


def projection_of(row: Sequence[Any]) -> Mapping[str, Any]:
    return {**_decode(row[2]), "execution_id": row[0], "last_seq": row[1]}


def work_row(item: WorkItem, born: int, meant: Claim | None) -> tuple[Any, ...]:
    worker, until = (None, None) if meant is None else (meant.worker, meant.until)
    return (
        item.work_id, numbered(item.execution_id), item.step, item.pool, item.priority, item.available_at,
        sorted(set(item.requires)), born, text(item), worker, until,
    )  # fmt: skip


def message_row(execution_id: str, message: AnyMessage) -> tuple[str, int, str]:
    return (message.message_id, numbered(execution_id), text(message))


def message_of(row: Sequence[Any]) -> tuple[str, AnyMessage]:
    return row[0], _message.decode(row[1])


def expired_of(rows: Sequence[Sequence[Any]], max_attempts: int) -> list[tuple[Lease, bool]]:
    """Give leases that were taken back, in the order in which they ran out, and whether no delivery is left."""
    leases = [Lease(_work.decode(row[5]), row[2], row[3], row[0], row[4]) for row in rows]
    leases.sort(key=lambda lease: (lease.until, lease.work.work_id))
    return [(lease, lease.attempt >= max_attempts) for lease in leases]
