"""What an explanation needs of a log: collected event by event, so it can go on.

Tested in tests/unit/engine/queries/test_explain.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from noetl.engine.queries.deadlines import UnderwayLog
from noetl.engine.state.dead_letters import letter_id
from noetl.model.events import Event

MOST_DECISIONS: Final = 1_000  # the newest ones
DECISIONS: Final = (
    "next.evaluated", "policy.admit.evaluated", "policy.task.evaluated", "execution.repaired", "message.poisoned",
)  # fmt: skip
_TIMED: Final = ("token.created", "token.parked", "step.suspended")


class Past:
    """Collects times, workers, failed gates and decisions; only `add` changes it."""

    def __init__(self) -> None:
        self.seq = 0
        self.times: dict[int, int] = {}  # of events that a state refers to
        self.workers: dict[str, str] = {}  # step-run → who started it last
        self.broken: dict[str, str] = {}  # token → the last condition of its gate that could not be evaluated
        self.queued_at: int | None = None
        self.undone: dict[str, int] = {}  # step-run → when its children began to roll back
        self.poisoned: dict[str, Event] = {}  # letter → its newest event
        self.underway = UnderwayLog()
        self.decisions: deque[Event] = deque(maxlen=MOST_DECISIONS)

    def add(self, event: Event) -> None:
        """Take the next event."""
        kind, payload = event.event_type, event.payload
        self.seq = event.seq
        self.underway.add(event)
        if kind in _TIMED:
            self.times[event.seq] = event.timestamp
        elif kind == "step.started":
            self.workers[str(event.step_run_id)] = str(payload.get("worker", ""))
        elif kind == "execution.queued":
            self.queued_at = event.timestamp
        elif kind == "message.poisoned":
            self.poisoned[letter_id(event.execution_id, str(payload["of"]), None)] = event
        elif kind == "policy.admit.evaluated" and payload.get("errors"):
            self.broken.update(dict.fromkeys(payload.get("tokens", ()), str(payload["errors"][-1])))
        if payload.get("undo"):
            self.undone[str(event.step_run_id)] = event.timestamp
        if kind in DECISIONS and (kind != "policy.task.evaluated" or payload.get("problems")):
            self.decisions.append(event)


def past(events: Iterable[Event]) -> Past:
    """Return what an explanation needs of a log."""
    made = Past()
    for event in events:
        made.add(event)
    return made
