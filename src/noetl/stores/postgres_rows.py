"""Rows of the PostgreSQL store, from and to what they stand for.

Execution ids are numbers there; a text that is none is the id of nothing. JSON goes in and comes out as text, so what is
read is what was written. Tested by tests/conformance.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import chain
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


def audit_rows(entries: Sequence[AuditEntry]) -> list[tuple[Any, ...]]:
    return [(one.at, one.actor, one.action, one.entity, text(one.detail)) for one in entries]


def events_text(events: Sequence[Event]) -> str:
    """Encode events as a row holds them: without execution id and seq, which are columns of the row."""
    return _encode([(fields[0], *fields[3:]) for fields in map(astuple, events)]).decode()


def log_rows(parts: Sequence[Sequence[Event]]) -> list[tuple[Any, ...]]:
    """Return the rows of the log, each with the position of its last event in the batch."""
    rows, place = [], 0
    for events in parts:
        last = events[-1]
        place += len(events)
        row = (numbered(last.execution_id), last.seq, len(events), events[0].event_id, events_text(events), place)
        rows.append(row)
    return rows


def events_in(execution_id: str, last: int, held: str) -> list[Event]:
    """Give the events of a row, of which `last` is the number of the last."""
    rows = _decode(held)
    return [Event(row[0], execution_id, seq, *row[1:]) for seq, row in enumerate(rows, last - len(rows) + 1)]


def events_of(execution_id: str, rows: Sequence[Sequence[Any]], after: int, limit: int | None) -> list[Event]:
    """Give the events after a number, of rows (seq of the last, size, events)."""
    found: list[Event] = []
    for last, size, held in rows:
        events = events_in(execution_id, last, held)
        found += events if last - size >= after else events[after - last :]
    return found if limit is None else found[:limit]


def positions_of(rows: Sequence[Sequence[Any]], most: int, wanted: Collection[str] | None) -> list[Position]:
    """Give the next events of every stream, in its order; of several, each has its turn.

    A row is (writer, last number seen, number of its last event, size, execution, seq of its last event, events). Of events
    that are not wanted the last of a stream is given, so that its reader moves along.
    """
    streams: dict[int, list[tuple[int, Position]]] = {}
    ends = {row[0]: row[2] for row in rows}
    for writer, seen, last, size, *row in rows:
        streams.setdefault(writer, []).extend(
            (seq - seen, Position(str(writer), seq, event))
            for seq, event in enumerate(events_in(*row), last - size + 1)
            if seq > seen and (wanted is None or event.event_type in wanted or seq == ends[writer])
        )
    in_turn = sorted(chain.from_iterable(streams.values()), key=lambda one: one[0])  # it keeps the order of the writers
    return [position for _, position in in_turn[:most]]


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
