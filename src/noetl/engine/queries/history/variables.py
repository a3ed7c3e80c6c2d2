"""Where the values of `ctx` come from: who wrote each, when, and how often.

Tested in tests/unit/engine/queries/history/test_variables.py.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from noetl.model.events import Event

_WRITERS: Final = ("ctx.patched", "loop.iteration.done", "loop.iteration.failed", "loop.item.repaired")


class VariableFacts(Struct):
    """The writes of one value; parts of a map count as writes of the map."""

    created_at: int  # milliseconds since the epoch
    changed_at: int
    seq: int  # of the event with the last write
    writes: int
    by: str  # run, `run→step` for an arc, signal or person that wrote last


class Variables:
    """Collects what is known of each value, by its name."""

    def __init__(self) -> None:
        self.found: dict[str, VariableFacts] = {}

    def add(self, event: Event) -> None:
        """Take the next event of the log."""
        if event.event_type == "signal.received":
            self._note("signals", event, f"signal:{event.payload.get('name', '')}")
        elif event.event_type in _WRITERS:
            by = str(event.payload.get("by") or event.step_run_id or "")
            for name in dict.fromkeys(key.partition(".")[0] for key in event.payload.get("writes") or ()):
                self._note(name, event, by)

    def _note(self, name: str, event: Event, by: str) -> None:
        known, at = self.found.get(name), event.timestamp
        created, writes = (at, 0) if known is None else (known.created_at, known.writes)
        self.found[name] = VariableFacts(created, at, event.seq, writes + 1, by)
