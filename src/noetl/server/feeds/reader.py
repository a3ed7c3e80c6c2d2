"""Read states and histories of executions from the log, for queries.

Recent states are cached and updated by the events after them. Never reads the sequencer's uncommitted states. Tested in
tests/unit/server/feeds/test_reader.py and tests/server/api/test_executions.py.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from noetl.engine.queries.view import envelope, step_of, types
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution
from noetl.model.errors import UnknownExecution
from noetl.model.events import Event
from noetl.ports import EventLog
from noetl.server.cache.state_cache import StateCache
from noetl.wire.answers import EventRow, Events
from noetl.wire.requests import EventsQuery

Mask = Callable[[Sequence[Event]], list[Event]]
Matcher = Callable[[Sequence[Event]], Iterator[Event]]
_ID = re.compile(r"[0-9]{1,18}")
_PAGE = 1_000
_MOST_PAGES = 20  # read for one request
_MOST_STATES, _MOST_BYTES = 64, 8 << 20  # in memory, between requests


def is_id(text: str) -> bool:
    """Return whether a text has the form of an execution id."""
    return _ID.fullmatch(text) is not None


def known_id(text: str) -> str:
    """Return a well-formed execution id. Raises UnknownExecution."""
    if not is_id(text):
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

    async def events(self, execution_id: str, query: EventsQuery, mask: Mask = list) -> Events:
        """Return a page of the events that match a query; text is that of masked events."""
        await self.row(execution_id)
        matches = _matcher(query, mask)
        if query.before is not None:
            return await self._events_before(execution_id, query.before, query.limit, matches)
        found: list[EventRow] = []
        after = query.after
        for _ in range(_MOST_PAGES):
            events = await self._log.read(execution_id, after, _PAGE)
            for event in matches(events):
                found.append(EventRow(**envelope(event)))
                if len(found) == query.limit:
                    return Events(events=found, next=event.seq)
            if len(events) < _PAGE:
                return Events(events=found)
            after = events[-1].seq
        return Events(events=found, next=after)

    async def _events_before(self, execution_id: str, before: int, limit: int, matches: Matcher) -> Events:
        """Return the last events before one, in their order; they are read backwards."""
        found: list[EventRow] = []
        for _ in range(_MOST_PAGES):
            first = max(0, before - 1 - _PAGE)
            events = await self._log.read(execution_id, first, before - 1 - first) if before > 1 else []
            for event in reversed(list(matches(events))):
                found.append(EventRow(**envelope(event)))
                if len(found) == limit:
                    return Events(events=found[::-1], previous=event.seq)
            before = first + 1
            if before <= 1:
                return Events(events=found[::-1])
        return Events(events=found[::-1], previous=before)


def _matcher(query: EventsQuery, mask: Mask) -> Matcher:
    wanted = types(query.type) if query.type else None
    text = query.text.lower() if query.text is not None else None

    def matches(events: Sequence[Event]) -> Iterator[Event]:
        for event in events:
            if (
                (wanted is None or event.event_type in wanted)
                and query.step in (None, step_of(event))
                and query.run in (None, event.step_run_id)
                and query.iteration in (None, event.iteration)
                and (text is None or text in _text(mask([event])[0]))
            ):
                yield event

    return matches


def _text(event: Event) -> str:
    return msgspec.json.encode(event).decode().lower()
