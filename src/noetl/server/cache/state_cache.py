"""Cache of execution states; a miss loads the last snapshot and later events.

A cached state is the fold of what is committed; otherwise it is dropped. An evicted one is kept encoded: it takes a fifth
of the memory, and an eighth of the time that reading its log takes. Makes no decisions. Tested in
tests/unit/server/cache/test_state_cache.py.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import msgspec
from msgspec import Struct

from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import STATE_VERSION, Execution, dump, load
from noetl.model.errors import Foreign, StoreUnavailable, log_level
from noetl.model.events import SCHEMA_VERSION
from noetl.observe.engine_counts import EngineCounts
from noetl.ports import EventLog
from noetl.ports.log import SavedState

_log = logging.getLogger(__name__)
_BYTES_PER_EVENT = 200  # a snapshot is worth the events whose bytes are about its own
_FIRST_PAGE = 500  # with the snapshot, of several executions at once
_PAGE = 5_000
_MOST_ENCODED = 64 << 10  # a larger state takes long to encode


class Known(Struct):
    """A state in memory, its size, and when its next snapshot is due."""

    state: Execution
    snapshot_at: int
    size: int = 0  # of its data, written as JSON


class Evicted:
    """Encoded states by execution, bounded: the first that came goes first."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._encoded: dict[str, tuple[bytes, int]] = {}  # with the time of the next snapshot

    def __contains__(self, execution_id: str) -> bool:
        return execution_id in self._encoded

    def add(self, execution_id: str, known: Known) -> None:
        if known.size > _MOST_ENCODED:
            return
        try:
            data = dump(known.state)
        except (OverflowError, TypeError):  # a value that snapshots cannot hold
            return
        if len(data) > _MOST_ENCODED:
            return
        self._encoded[execution_id] = data, known.snapshot_at
        self._bytes += len(data)
        while self._bytes > self._most_bytes:
            self.pop(next(iter(self._encoded)))

    def pop(self, execution_id: str) -> tuple[bytes, int] | None:
        found = self._encoded.pop(execution_id, None)
        self._bytes -= len(found[0]) if found is not None else 0
        return found


class StateCache:
    """States by execution, bounded: ended ones go first, then least recently used."""

    def __init__(
        self,
        log: EventLog,
        most: int = 2_048,
        every: int = 500,
        few: int = 512,
        most_bytes: int = 24 << 20,
        most_evicted_bytes: int = 16 << 20,
        counts: EngineCounts | None = None,
    ) -> None:
        self._log = log
        self._counts = counts or EngineCounts()
        self._most = most
        self._few = min(few, most)
        self._most_bytes = most_bytes
        self._bytes = 0
        self._pinned: set[str] = set()
        self.every = every  # fewest events between two snapshots
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._evicted = Evicted(most_evicted_bytes)

    async def get(self, execution_id: str, *, new: bool = False) -> Execution:
        """Return the state of an execution; an unknown one is pending, with seq 0.

        If it is probably `new`, the store is not read: the commit is refused if the execution exists.
        """
        state = self.known(execution_id)
        if state is None and new:
            return self.new(execution_id)
        if state is None:
            began = self._counts.begin()
            [saved] = await self._log.saved_states([execution_id], STATE_VERSION, _FIRST_PAGE)
            state = self._keep(execution_id, *await self._folded(saved))
            self._counts.replayed(began)
        return state

    async def load(self, execution_ids: Iterable[str]) -> None:
        """Load states that are asked for next, together; `get` reports what is wrong."""
        unknown = [one for one in dict.fromkeys(execution_ids) if one not in self._known and one not in self._evicted]
        if len(unknown) < 2:
            return
        began = self._counts.begin()
        for saved in await self._log.saved_states(unknown, STATE_VERSION, _FIRST_PAGE):
            with suppress(Foreign):
                loaded = await self._folded(saved)
                self._counts.replayed(began)
                began = self._counts.begin()
                if self.known(saved.execution_id) is None:  # another reader may have been faster
                    self._keep(saved.execution_id, *loaded)

    def new(self, execution_id: str) -> Execution:
        """Return the state of an execution that is probably new."""
        return self._keep(execution_id, Execution(execution_id), self.every)

    def known(self, execution_id: str) -> Execution | None:
        """Return a cached state."""
        known = self._known.get(execution_id)
        if known is not None:
            self._counts.found_state()
            self._known.move_to_end(execution_id)
            return known.state
        evicted = self._evicted.pop(execution_id)
        if evicted is None:
            return None
        self._counts.found_state()
        data, snapshot_at = evicted
        return self._keep(execution_id, load(data), snapshot_at)

    def _keep(self, execution_id: str, state: Execution, snapshot_at: int) -> Execution:
        self._evicted.pop(execution_id)
        self._known[execution_id] = Known(state, snapshot_at)
        self.weigh(execution_id)
        while len(self._known) > self._few:
            first = next(iter(self._known.values()))
            if (first.state.phase != "ended" and len(self._known) <= self._most) or not self._evict():
                break
        return state

    def weigh(self, execution_id: str) -> None:
        """Count the size of a state's data; evict others if it is large."""
        known = self._known.get(execution_id)
        if known is None or not (known.state.workload or known.state.ctx):
            return
        with suppress(OverflowError, TypeError, ValueError):  # what cannot be written is small
            self._measure(known, len(msgspec.json.encode((known.state.workload, known.state.ctx))))
        while self._bytes > self._most_bytes and len(self._known) > 1 and self._evict():
            pass

    def _measure(self, known: Known, size: int) -> None:
        self._bytes += size - known.size
        known.size = size

    @contextmanager
    def pinned(self, execution_id: str) -> Iterator[None]:
        """Do not evict a state until the end; it may still be dropped."""
        self._pinned.add(execution_id)
        try:
            yield
        finally:
            self._pinned.discard(execution_id)

    def _evict(self) -> bool:
        """Evict the first state that is not pinned; return False if all are."""
        first = next((execution_id for execution_id in self._known if execution_id not in self._pinned), None)
        if first is None:
            return False
        known = self._known[first]
        self.drop(first)
        if known.state.phase != "ended":
            self._evicted.add(first, known)
        return True

    def mark_ended(self, execution_id: str) -> None:
        """Make a state the next to be evicted, because its execution has ended."""
        if execution_id in self._known:
            self._known.move_to_end(execution_id, last=False)

    def drop(self, execution_id: str) -> None:
        """Drop a state that may differ from what is committed."""
        known = self._known.pop(execution_id, None)
        self._bytes -= known.size if known is not None else 0
        self._evicted.pop(execution_id)

    def is_due(self, execution_id: str, seq: int) -> bool:
        """Return whether a snapshot is due; never beyond `seq`: that may yet be refused."""
        known = self._known.get(execution_id)
        return known is not None and known.state.seq == seq >= known.snapshot_at

    async def committed(self, execution_id: str, seq: int) -> None:
        """Save a snapshot of a state that was just committed up to `seq`, if due."""
        known = self._known.get(execution_id)
        if known is None or not self.is_due(execution_id, seq):
            return
        try:
            data = dump(known.state)
        except (OverflowError, TypeError):  # a value that snapshots cannot hold: the log has it anyway
            known.snapshot_at = known.state.seq + 100 * self.every
            return
        known.snapshot_at = known.state.seq + max(self.every, len(data) // _BYTES_PER_EVENT)
        self._measure(known, len(data))
        try:
            await self._log.save_snapshot(execution_id, known.state.seq, STATE_VERSION, data)
        except StoreUnavailable as error:  # a snapshot only saves time
            _log.log(log_level(error), "no snapshot of execution %s: %s", execution_id, error)

    async def _folded(self, saved: SavedState) -> tuple[Execution, int]:
        """Return the state, and when its next snapshot is due."""
        execution_id, events = saved.execution_id, saved.events
        state, size, page = Execution(execution_id), 0, _FIRST_PAGE
        if saved.snapshot is not None:
            try:
                state, size = load(saved.snapshot[1]), len(saved.snapshot[1])
            except (msgspec.DecodeError, msgspec.ValidationError):  # not ours after all: the log has everything
                events = await self._log.read(execution_id, 0, page)
        start = state.seq
        while events:
            newest = max(event.version for event in events)
            if newest > SCHEMA_VERSION:
                raise Foreign(
                    f"execution {execution_id} holds events of version {newest}; this NoETL knows {SCHEMA_VERSION}. "
                    "Use the newer one."
                )
            fold(execution_id, events, state)
            if len(events) < page:
                break
            page = _PAGE
            events = await self._log.read(execution_id, state.seq, page)
        return state, start + max(self.every, size // _BYTES_PER_EVENT)
