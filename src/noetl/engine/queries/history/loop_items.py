"""The items of a loop: one character for each, and a list with durations.

A running loop's own counters say which items are queued, running and waiting. Tested in
tests/unit/engine/queries/history/test_loop_items.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from itertools import islice
from typing import Final

from msgspec import Struct

from noetl.engine.state.execution import Execution, Loop
from noetl.engine.state.frames import Claims
from noetl.model.events import Event

NOT_ISSUED: Final = ord(".")
STATES: Final = {
    ".": "not issued",
    "q": "queued",
    "r": "running",
    "w": "waiting",
    "d": "done",
    "f": "failed",
    "k": "skipped",
    "p": "repaired",
}
MARKS: Final = {word: mark for mark, word in STATES.items()}
MOST_MARKS: Final = 1_000_000  # of one map; longer loops are counted by ranges
_RANGES: Final = 1_000


class Item(Struct, frozen=True):
    """An item of a loop; durations are as exact as the reports of its worker."""

    index: int
    state: str
    key: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    duration_ms: int | None = None
    error: str | None = None


class Range(Struct, frozen=True):
    """A range of items with its number of items by state."""

    start: int
    count: int
    states: Mapping[str, int]


class Items:
    """Collects the items of one loop from its events, in order."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.is_known = False
        self.is_loop = False
        self.is_cursor = False
        self.marks = bytearray()
        self._claims = Claims()
        self._keys: dict[int, str] = {}
        self._errors: dict[int, str] = {}
        self._times: dict[int, tuple[int | None, int]] = {}
        self._taken: dict[str, tuple[int, int]] = {}  # piece → when its worker started it, its width
        self._ends: dict[str, list[int]] = {}
        self._widths: dict[str, int] = {}
        self._suspended: dict[int, int] = {}  # item → when it last began to wait

    def add(self, event: Event) -> None:
        """Take the next event; others' events change nothing."""
        kind, payload, index = event.event_type, event.payload, event.iteration
        if kind == "loop.item.repaired" and index is not None and payload.get("of") == self.run:
            self._put(index, "p")
            return
        if event.step_run_id != self.run:
            return
        self.is_known = True
        for _, key in self._claims.items(kind, payload):
            if key is not None:
                self._keys[len(self.marks)] = str(key)
            self.marks.append(NOT_ISSUED)
        if kind == "loop.started":
            self.is_loop, self.is_cursor = True, bool(payload.get("cursor"))
            self.marks = bytearray([NOT_ISSUED]) * int(payload.get("total", len(payload["items"])))
        elif kind == "loop.iteration.scheduled":
            self._widths[str(payload["chunk"])] = int(payload.get("width", 1))
        elif kind == "loop.iteration.started":
            chunk = str(payload["chunk"])
            self._taken[chunk] = (event.timestamp, self._widths.get(chunk, 1))
        elif index is not None and kind == "step.suspended":
            self._suspended[index] = event.timestamp
        elif index is not None and kind in ("loop.iteration.done", "loop.iteration.failed"):
            self._ended(event, index)

    def _ended(self, event: Event, index: int) -> None:
        self._times[index] = (self._began(event, index), event.timestamp)
        if event.event_type == "loop.iteration.failed":
            error = event.payload.get("error")
            message = str(error.get("message", "")) if isinstance(error, Mapping) else str(error or "")
            self._errors[index] = message[:500]
            self._put(index, "f")
        else:
            self._put(index, "k" if event.status == "skipped" else "d")

    def _began(self, event: Event, index: int) -> int | None:
        """Return when an item began; one that a wait ended began with its wait."""
        if "chunk" not in event.payload:
            return self._suspended.get(index)
        chunk = str(event.payload["chunk"])
        ends = self._ends.setdefault(chunk, [])
        taken, width = self._taken.get(chunk, (None, 1))
        began = ends[len(ends) - width] if len(ends) >= width else taken  # the end of one starts the next
        ends.append(event.timestamp)
        return began

    def _put(self, index: int, mark: str) -> None:
        if index < len(self.marks):
            self.marks[index] = ord(mark)

    def at(self, state: Execution) -> Items:
        """Return the items with those marked that have not ended in a running loop."""
        made = copy(self)
        made.marks = bytearray(self.marks)
        run = state.runs.get(self.run)
        if run is not None and run.loop is not None:
            made._open(run.loop)
        return made

    def _open(self, loop: Loop) -> None:
        for piece in loop.pieces.values():
            for index in piece.pending:
                self._put(index, "r" if piece.epoch else "q")
        for index in loop.suspended:
            self._put(index, "w")

    def counts(self) -> dict[str, int]:
        """Return the number of items by state."""
        return _counts(self.marks)

    def ranges(self) -> list[Range]:
        """Return equal ranges of the items with their counts."""
        size = max(1, -(-len(self.marks) // _RANGES))
        parts = ((at, self.marks[at : at + size]) for at in range(0, len(self.marks), size))
        return [Range(at, len(part), _counts(part)) for at, part in parts]

    def page(self, states: Sequence[str], slowest: bool, after: int, limit: int) -> list[Item]:
        """Return a page of the items of these states; `after` items are passed over."""
        wanted = {ord(MARKS[state]) for state in states} if states else None
        chosen: Iterable[int] = (index for index, mark in enumerate(self.marks) if wanted is None or mark in wanted)
        if slowest:
            chosen = sorted((index for index in chosen if index in self._times), key=self._slowness)
        return [self._item(index) for index in islice(chosen, after, after + limit)]

    def _slowness(self, index: int) -> tuple[int, int]:
        began, ended = self._times[index]
        return (-(ended - began) if began is not None else 0, index)

    def _item(self, index: int) -> Item:
        began, ended = self._times.get(index, (None, None))
        span = ended - began if began is not None and ended is not None else None
        state = STATES[chr(self.marks[index])]
        return Item(index, state, self._keys.get(index), began, ended, span, self._errors.get(index))


def _counts(marks: bytearray) -> dict[str, int]:
    found = {word: marks.count(mark.encode()) for mark, word in STATES.items()}
    return {word: count for word, count in found.items() if count}
