"""Makes the rows of the SQLite file: events that were committed together, and work.

Tested in tests/conformance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple

from noetl.model.events import Event
from noetl.model.work import WorkItem

_encode = msgspec.json.encode


def text(value: Any) -> str:
    return _encode(value).decode()


def log_row(events: Sequence[Event]) -> tuple[Any, ...]:
    """Give the row of events that were committed together."""
    last = events[-1]
    return (last.execution_id, last.seq, len(events), events[0].event_id, text(list(map(astuple, events))))


def work_row(item: WorkItem, born: int, written: str) -> tuple[Any, ...]:
    """Give the row of a piece of work, which is `written` already, but for its lease."""
    chunk = None if item.chunk is None else item.chunk.chunk_id
    requires = text(sorted(set(item.requires))) if item.requires else ""
    placing = (item.pool, requires, item.priority, item.available_at, born)
    return (item.work_id, item.execution_id, item.run_id, chunk, *placing, written)
