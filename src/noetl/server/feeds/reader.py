"""Read states and histories of executions from the log, for queries.

Recent states are cached and updated by the events after them. Never reads the sequencer's uncommitted states. Tested in
tests/unit/server/feeds/test_reader.py and tests/server/api/test_executions.py.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any
from weakref import WeakValueDictionary

from noetl.engine.queries.view import envelope, step_of, types
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution
from noetl.model.errors import UnknownExecution
from noetl.ports import EventLog
from noetl.server.cache.state_cache import StateCache
from noetl.wire.answers import EventRow, Events
from noetl.wire.requests import EventsQuery

_ID = re.compile(r"[0-9]{1,18}")
_PAGE = 1_000
_MOST_PAGES = 20  # read for one request
_MOST_STATES, _MOST_BYTES = 64, 8 << 20  # in memory, between requests


def known_id(text: str) -> str:
    """Return a well-formed execution id. Raises UnknownExecution."""
    if _ID.fullmatch(text) is None:
        raise UnknownExecution(f"No execution {text[:40]!r}: an execution id is a number.")
    return text


def unknown_execution(execution_id: str) -> UnknownExecution:
    """Return the error for an id that names no execution."""
    return UnknownExecution(f"No execution {execution_id} in this store.")


class Reader:
    """Reads rows, states and events; bounded in the states that it keeps."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._states = StateCache(log, _MOST_STATES, most_bytes=_MOST_BYTES)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # one reads an execution at a time

    async def row(self, execution_id: str) -> dict[str, Any]:
        """Return the row of an execution. Raises UnknownExecution."""
        row = await self._log.execution(known_id(execution_id))
        if row is None:
            raise unknown_execution(execution_id)
        return dict(row)

    async def state(self, execution_id: str) -> Execution:
        """Return the committed state; do not change it or keep it across an await."""
        turn = self._turns.setdefault(known_id(execution_id), asyncio.Lock())
        async with turn:
            state = await self._states.get(execution_id)
            before = state.seq
            while events := await self._log.read(execution_id, state.seq, _PAGE):
                fold(execution_id, events, state)
                if len(events) < _PAGE:
                    break
            if not state.seq:
                self._states.drop(execution_id)
                raise unknown_execution(execution_id)
            if state.seq > before:
                self._states.weigh(execution_id)
        return state

    def forget(self, execution_id: str) -> None:
        """Drop an execution that was removed."""
        self._states.drop(execution_id)

    async def events(self, execution_id: str, query: EventsQuery) -> Events:
        """Return a page of the events that match a query."""
        wanted = types(query.type) if query.type else None
        await self.row(execution_id)
        found: list[EventRow] = []
        after = query.after
        for _ in range(_MOST_PAGES):
            events = await self._log.read(execution_id, after, _PAGE)
            for event in events:
                after = event.seq
                if (wanted is None or event.event_type in wanted) and query.step in (None, step_of(event)):
                    found.append(EventRow(**envelope(event)))
                    if len(found) == query.limit:
                        return Events(events=found, next=after)
            if len(events) < _PAGE:
                return Events(events=found)
        return Events(events=found, next=after)
