"""Projections of a log: work, timers, dead letters, messages to relatives.

Decisions update these step by step; here they are derived from the final state, so that lost or wrong tables can be
rebuilt. Tested in tests/scenarios/test_derived.py and tests/unit/server/background/test_rebuild.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from noetl.engine.decision.work import open_work
from noetl.engine.plan.plan import Plan
from noetl.engine.routing.saga import child_ended
from noetl.engine.routing.suspend import start_of_child
from noetl.engine.state.dead_letters import change_of
from noetl.engine.state.execution import Execution
from noetl.engine.state.lineage import left_alone
from noetl.model.events import Event
from noetl.model.letters import DeadLetter, changed
from noetl.model.messages import Cancel, ChildEnded, Start
from noetl.model.work import WorkItem


class Recorded(msgspec.Struct):
    """What the state does not keep of a log, collected while it is folded."""

    available_at: dict[str, int] = {}  # by run
    path: str = ""
    children: dict[str, Mapping[str, Any]] = {}  # by id: the request of each
    epoch: int = 0  # the highest in the log
    letters: dict[str, DeadLetter] = {}  # by id

    def note(self, events: Iterable[Event]) -> None:
        """Collect from events."""
        for event in events:
            payload = event.payload
            self.path = payload.get("path", "") if event.event_type == "playbook.execution.requested" else self.path
            change = change_of(self.path, event)
            letter = None if change is None else changed(self.letters.get(change.message_id), change)
            if letter is not None:
                self.letters[letter.message_id] = letter
            self.epoch = max(self.epoch, payload.get("epoch") or 0)
            if event.event_type == "step.scheduled" and event.step_run_id is not None:
                self.available_at[event.step_run_id] = payload.get("available_at", 0)
            elif event.event_type == "step.suspended" and "child_id" in payload:
                self.children[payload["child_id"]] = payload["child"]


def work(plan: Plan, state: Execution, recorded: Recorded) -> list[tuple[int, WorkItem]]:
    """Return the queued and leased work with its time of scheduling, oldest first."""
    return [] if state.is_withheld else open_work(plan, state, recorded.available_at)


def timers(state: Execution) -> tuple[tuple[str, int], ...]:
    """Return the timers that are set."""
    found = () if state.is_withheld else state.timers.values()
    return tuple((timer.timer_id, timer.at) for timer in found)


def starts(plan: Plan, state: Execution, recorded: Recorded, unborn: Collection[str]) -> list[tuple[str, Start]]:
    """Return the start messages of children without a log (`unborn`)."""
    messages = []
    for child_id, (run_id, index) in state.children.items():
        run = state.runs.get(run_id)
        if child_id in unborn and child_id in recorded.children and run is not None:
            request = recorded.children[child_id]
            messages.append((child_id, start_of_child(plan, state, run, index, request, f"derived:start:{child_id}")))
    return messages


def word_to_parent(state: Execution) -> tuple[str, ChildEnded] | None:
    """Return the message of an ended child to its parent."""
    if state.phase != "ended" or state.parent is None:
        return None
    return str(state.parent.get("execution_id")), child_ended(state, f"derived:ended:{state.execution_id}")


def never_born(state: Execution, unborn: Collection[str]) -> list[tuple[str, ChildEnded]]:
    """Return the messages that end children cancelled before they had a log."""
    cancelled = [child for child in left_alone(state) if child in unborn]
    return [
        (state.execution_id, ChildEnded(f"derived:ended:{child}", state.children[child][0], child, "cancelled"))
        for child in cancelled
    ]


def end_of_orphan(state: Execution, *, undo: bool = False) -> Cancel | None:
    """Return the message that cancels a child whose parent dropped it, if needed."""
    if state.parent is None or state.phase not in ("queued", "running") or state.cut is not None:
        return None
    parent = state.parent.get("execution_id")
    return Cancel(f"derived:cancel:{state.execution_id}", f"its parent {parent} ended the step", compensate=undo)
