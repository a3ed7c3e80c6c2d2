"""Compensation guarantees of the engine, checked against a log.

Completed runs are compensated newest first, once each: all of them if the execution failed, none otherwise. The execution
records whether every compensation succeeded. Tested in tests/unit/testing/test_sagas.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from noetl.dsl.tree.playbook import Playbook
from noetl.engine.state.evolve import fold
from noetl.model.events import Event


class Undoing(Struct, frozen=True):
    """Compensation facts of a log."""

    completed: tuple[str, ...]  # runs with a compensation, in completion order
    begun: tuple[str, ...]  # runs whose compensation began, in order
    undone: tuple[str, ...]  # runs whose compensation succeeded, each time
    given_up: tuple[str, ...]
    letters: int  # how many of those are dead letters
    status: str | None  # None: not finished
    compensated: bool | None


def undoing(events: list[Event]) -> Undoing:
    """Extract the compensation facts of a log."""
    completed: list[str] = []
    begun: list[str] = []
    undone: list[str] = []
    given_up: list[str] = []
    undoes: dict[str, str] = {}  # compensation run → compensated run
    letters, status, compensated = 0, None, None
    waiting: set[str] = set()  # runs with an item in the dead letters
    for event in events:
        run = str(event.step_run_id)
        match event.event_type:
            case "step.scheduled" if event.payload.get("role") == "compensation":
                undoes[run] = str(event.payload.get("compensates"))
                begun.append(undoes[run])
            case "step.done" if run in undoes:
                undone.append(undoes[run])
            case "step.done" if "compensate" in event.payload:
                completed.append(run)
            case "step.failed" if run in undoes and event.payload.get("dead"):
                given_up.append(undoes[run])
                letters += "letter" in event.payload or run in waiting
            case "loop.iteration.failed" if "letter" in event.payload:
                waiting.add(run)
            case "playbook.finished":
                status, compensated = event.status, event.payload.get("compensated")
    return Undoing(tuple(completed), tuple(begun), tuple(undone), tuple(given_up), letters, status, compensated)


def broken_promises(playbook: Playbook, events: list[Event]) -> Iterator[str]:
    """Yield the guarantees that a log violates."""
    found = undoing(events)
    if found.status is None:
        yield "the execution has not finished"
        return
    state = fold(events[0].execution_id, events)
    if state.runs or state.tokens:
        yield f"the execution has finished, but these continue: {sorted([*state.runs, *state.tokens])}"
    if not _rolls_back(playbook, found, events):
        if found.begun:
            yield f"compensations ran although the execution is {found.status}: {' '.join(found.begun)}"
        return
    order = tuple(dict.fromkeys(found.begun))
    newest_first = tuple(reversed(found.completed))
    if order != newest_first:
        yield f"compensated {' '.join(order) or 'nothing'}, expected {' '.join(newest_first) or 'nothing'}"
    for run in found.completed:
        ended = found.undone.count(run) + found.given_up.count(run)
        if ended != 1:
            yield f"{run} was compensated {found.undone.count(run)} times and given up {found.given_up.count(run)} times"
    if found.letters != len(found.given_up):
        yield f"{len(found.given_up)} compensations were given up, but {found.letters} are dead letters"
    if found.compensated is not (not found.given_up):
        yield f"`compensated` is {found.compensated}, but {len(found.given_up)} compensations were given up"


def _rolls_back(playbook: Playbook, found: Undoing, events: list[Event]) -> bool:
    if found.status == "cancelled":
        return found.compensated is not None
    if found.status != "failed" or playbook.rollback != "on_fail":
        return False
    last = next((i for i, event in enumerate(events) if event.payload.get("role") == "final"), None)
    return last is None or fold(events[0].execution_id, events[:last]).outcome == "failed"
