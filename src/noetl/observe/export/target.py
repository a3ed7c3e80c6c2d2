"""Port of export targets, and the record that each of them gets.

`server/background/log_export.py` reads the log, masks it and keeps the position in the store; a target only sends. Tested in
tests/unit/observe/export/.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from noetl.engine.queries.view import step_of
from noetl.model.events import EVENT_TYPES, Event
from noetl.model.outcome import class_of

_STARTED = frozenset(("started", "scheduled", "created", "requested", "set", "queued"))
_COMPLETED = frozenset(("done", "finished", "processed", "fired", "received", "evaluated", "stored", "settled"))
_FAILED = frozenset(("failed", "cancelled", "poisoned"))
_BAD = frozenset(("failed", "error", "cancelled"))
_encode = msgspec.json.Encoder().encode


class ExportError(Exception):
    """A batch did not arrive; it is sent again."""


class Exported(msgspec.Struct, frozen=True):
    """Masked event, and the path of the playbook that its execution runs."""

    event: Event
    workflow: str
    payload: str  # of the event, as JSON

    @classmethod
    def of(cls, event: Event, workflow: str = "", coded: bytes | None = None) -> Exported:
        """Return the record of a masked event; `coded` is its payload as JSON."""
        return cls(event, workflow, (_encode(event.payload) if coded is None else coded).decode())

    @property
    def name(self) -> str:
        """Display name of the type, such as `StepDone`."""
        return _display(self.event.event_type)

    @property
    def step(self) -> str:
        return step_of(self.event) or ""

    @property
    def status(self) -> str:
        """STARTED, COMPLETED or FAILED; empty for an event that is neither."""
        return _status(self.event.event_type, self.event.status)

    @property
    def error(self) -> dict[str, Any]:
        found = self.event.payload.get("error")
        return found if isinstance(found, dict) else {}

    @property
    def error_message(self) -> str:
        return str(self.error.get("message", ""))

    @property
    def error_class(self) -> str:
        return class_of(self.error) if self.error else ""


@lru_cache(maxsize=1_024)
def _display(event_type: str) -> str:
    found = EVENT_TYPES.get(event_type)
    return found.display if found is not None else event_type


@lru_cache(maxsize=1_024)
def _status(event_type: str, status: str | None) -> str:
    word = event_type.rpartition(".")[2]
    if word in _FAILED or (word in _COMPLETED and status in _BAD):
        return "FAILED"
    return "COMPLETED" if word in _COMPLETED else "STARTED" if word in _STARTED else ""


class ExportTarget(Protocol):
    """System that events are exported to. Every method raises ExportError."""

    name: str  # of its position in the store, and label of its series
    wanted: frozenset[str] | None  # types of events; None: all
    every_s: float  # time between two batches while events trickle in
    most: int  # events in a batch

    async def prepare(self) -> None:
        """Create what is missing there; called first, and after each failure."""

    async def send(self, batch: Sequence[Exported], begin: str, *, is_repeat: bool) -> None:
        """Deliver a batch; on return it is durable there.

        `begin` stands for the position before the batch. With `is_repeat` events after that position may have arrived
        before: the target makes sure that none is there twice.
        """

    async def close(self) -> None: ...
