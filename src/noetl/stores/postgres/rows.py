"""Rows of the PostgreSQL store: encoding and decoding.

Execution ids are numbers there; a text that is not a number names no execution. JSON is sent and read as text, so values are
read exactly as written. Tested in tests/conformance.
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
from noetl.model.work import Lease, WorkItem, distance
from noetl.ports import AuditEntry, Claim, Position
from noetl.ports.log import SavedState
from noetl.stores.common.audit_rows import content_row
from noetl.stores.common.batch import about, slot_columns
from noetl.stores.common.work_limits import limits_text

_encode = msgspec.json.encode
_decode = msgspec.json.decode
_message = msgspec.json.Decoder(AnyMessage)
_work = msgspec.json.Decoder(WorkItem)
WITHIN = "EXISTS (SELECT FROM unnest({}::text[]) AS n (name) WHERE starts_with(path, n.name))"  # namespaces
_LARGEST = 2**63 - 1


@lru_cache(4_096)
def number(execution_id: str) -> int | None:
    """Return the number of an execution; None if the text names none."""
    if not (execution_id.isascii() and execution_id.isdecimal()) or len(execution_id) > 19:
        return None
    found = int(execution_id)
    return found if found <= _LARGEST and str(found) == execution_id else None


def numbered(execution_id: str) -> int:
    """Return an execution's number. Raises InvalidInput if the id is not a number."""
    found = number(execution_id)
    if found is None:
        raise InvalidInput(f"an execution id must be a whole number below 2**63, and this is {execution_id!r}")
    return found


def text(value: Any) -> str:
    """Encode a value as JSON."""
    return _encode(value).decode()


def audit_rows(entries: Sequence[AuditEntry]) -> list[tuple[Any, ...]]:
    """Return entries as `audit_row`s, each with its digest."""
    return [content_row(one) for one in entries]


def events_text(events: Sequence[Event]) -> str:
    """Encode events for a row: without execution id and seq, which are columns."""
    return _encode([(fields[0], *fields[3:]) for fields in map(astuple, events)]).decode()


def log_rows(parts: Sequence[Sequence[Event]]) -> list[tuple[Any, ...]]:
    """Return the rows of the log, each with the batch position of its last event."""
    rows, place = [], 0
    for events in parts:
        last = events[-1]
        place += len(events)
        row = (numbered(last.execution_id), last.seq, len(events), events[0].event_id, events_text(events), place)
        rows.append(row)
    return rows


def events_in(execution_id: str, last: int, encoded: str) -> list[Event]:
    """Decode the events of a row; `last` is the seq of the last one."""
    rows = _decode(encoded)
    return [Event(row[0], execution_id, seq, *row[1:]) for seq, row in enumerate(rows, last - len(rows) + 1)]


def events_of(execution_id: str, rows: Sequence[Sequence[Any]], after: int, limit: int | None) -> list[Event]:
    """Return events after a number from rows (seq of the last event, size, events)."""
    found: list[Event] = []
    for last, size, encoded in rows:
        events = events_in(execution_id, last, encoded)
        found += events if last - size >= after else events[after - last :]
    return found if limit is None else found[:limit]


def saved_states_of(execution_ids: Sequence[str], rows: Sequence[Sequence[Any]], limit: int) -> list[SavedState]:
    """Return saved states from rows (execution, seq, size, events, snapshot)."""
    snapshots: dict[int, tuple[int, bytes]] = {}
    logged: dict[int | None, list[Sequence[Any]]] = {}
    for name, seq, size, events, state in rows:
        if state is None:
            logged.setdefault(name, []).append((seq, size, events))
        else:
            snapshots[name] = (seq, state)
    found = []
    for execution_id in execution_ids:
        name = number(execution_id)
        snapshot = snapshots.get(name) if name is not None else None
        after = 0 if snapshot is None else snapshot[0]
        found.append(SavedState(execution_id, snapshot, events_of(execution_id, logged.get(name, ()), after, limit)))
    return found


def positions_of(rows: Sequence[Sequence[Any]], most: int, wanted: Collection[str] | None) -> list[Position]:
    """Return the next events of every stream in order, streams in turn.

    A row is (writer, last number seen, number of its last event, size, execution, seq of its last event, events). The last
    event of a stream is returned even if it is not wanted, so that the reader's position advances.
    """
    streams: dict[int, list[tuple[int, Position]]] = {}
    ends = {row[0]: row[2] for row in rows}
    for writer, seen, last, size, *row in rows:
        streams.setdefault(writer, []).extend(
            (seq - seen, Position(str(writer), seq, event))
            for seq, event in enumerate(events_in(*row), last - size + 1)
            if seq > seen and (wanted is None or event.event_type in wanted or seq == ends[writer])
        )
    in_turn = sorted(chain.from_iterable(streams.values()), key=lambda one: one[0])  # stable: writers stay in order
    return [position for _, position in in_turn[:most]]


def execution_row(execution_id: str, expected: int, seq: int, projection: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """Return the row of an execution, with the last seq that the batch expects."""
    name = numbered(execution_id)
    if projection is None:
        return (name, expected, seq, None, None, None, None, None, None, None, None, None, None, None)
    path, parent, tags, started_at = (None,) * 4 if expected else about(projection)
    error = projection.get("error")
    message = str(error.get("message") or "").replace("\0", "") if isinstance(error, Mapping) else None
    return (
        name, expected, seq, str(projection.get("status", "pending")), path, parent, tags or None, started_at,
        projection.get("ended_at"), message, text(projection), *slot_columns(projection),
    )  # fmt: skip


def projection_of(row: Sequence[Any]) -> Mapping[str, Any]:
    return {**_decode(row[2]), "execution_id": row[0], "last_seq": row[1]}


def work_row(item: WorkItem, born: int, behind: int, claim: Claim | None) -> tuple[Any, ...]:
    """Return the row of a new work item; `claim` is the one it is assigned to."""
    worker, until = (None, None) if claim is None else (claim.worker, claim.until)
    return (
        item.work_id, numbered(item.execution_id), item.step, item.pool, item.priority, item.available_at,
        sorted(set(item.requires)) or None, born, text(item), worker, until, item.flow, distance(item), behind,
        limits_text(item) or None,
    )  # fmt: skip


def message_row(execution_id: str, message: AnyMessage) -> tuple[str, int, str]:
    return (message.message_id, numbered(execution_id), text(message))


def message_of(row: Sequence[Any]) -> tuple[str, AnyMessage]:
    return row[0], _message.decode(row[1])


def expired_of(rows: Sequence[Sequence[Any]], max_attempts: int) -> list[tuple[Lease, bool]]:
    """Return leases in order of expiry, each with whether no delivery is left."""
    leases = [Lease(_work.decode(row[5]), row[2], row[3], row[0], row[4]) for row in rows]
    leases.sort(key=lambda lease: (lease.until, lease.work.work_id))
    return [(lease, lease.attempt >= max_attempts) for lease in leases]
