"""What the engine promises of compensation, looked for in the log of a play.

Newest first over the runs that completed, once each, all of them where the execution failed and none where it did not; and
the execution says whether everything was undone. Tested in tests/unit/testing/test_sagas.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from noetl.dsl.playbook import Playbook
from noetl.engine.evolve import fold
from noetl.model.events import Event


class Undoing(Struct, frozen=True):
    """What a log tells of compensation."""

    completed: tuple[str, ...]  # runs that can be compensated, as they ended
    begun: tuple[str, ...]  # runs whose compensation began, in order
    undone: tuple[str, ...]  # and those where it succeeded, each time
    given_up: tuple[str, ...]
    letters: int  # of those, how many wait in the dead letters
    status: str | None  # None: it has not ended
    compensated: bool | None


def undoing(events: list[Event]) -> Undoing:
    """Read what was undone."""
    completed: list[str] = []
    begun: list[str] = []
    undone: list[str] = []
    given_up: list[str] = []
    undoes: dict[str, str] = {}  # compensation run → the run it undoes
    letters, status, compensated = 0, None, None
    waiting: set[str] = set()  # runs of which an item waits in the dead letters
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
    """Say which promises a log does not keep."""
    found = undoing(events)
    if found.status is None:
        yield "the execution has not ended"
        return
    state = fold(events[0].execution_id, events)
    if state.runs or state.tokens:
        yield f"the execution has ended, and something of it goes on: {sorted([*state.runs, *state.tokens])}"
    if not _rolls_back(playbook, found, events):
        if found.begun:
            yield f"compensations ran though the execution is {found.status}: {' '.join(found.begun)}"
        return
    order = tuple(dict.fromkeys(found.begun))
    newest_first = tuple(reversed(found.completed))
    if order != newest_first:
        yield f"compensation went over {' '.join(order) or 'nothing'}, not over {' '.join(newest_first) or 'nothing'}"
    for run in found.completed:
        ended = found.undone.count(run) + found.given_up.count(run)
        if ended != 1:
            yield f"{run} was undone {found.undone.count(run)} times and given up {found.given_up.count(run)} times"
    if found.letters != len(found.given_up):
        yield f"{len(found.given_up)} compensations were given up, and {found.letters} wait in the dead letters"
    if found.compensated is not (not found.given_up):
        yield f"`compensated` is {found.compensated}, and {len(found.given_up)} compensations were given up"


def _rolls_back(playbook: Playbook, found: Undoing, events: list[Event]) -> bool:
    """Tell whether an execution undoes what it did: it failed before its final step, or was cancelled with that wish."""
    if found.status == "cancelled":
        return found.compensated is not None
    if found.status != "failed" or playbook.rollback != "on_fail":
        return False
    last = next((i for i, event in enumerate(events) if event.payload.get("role") == "final"), None)
    return last is None or fold(events[0].execution_id, events[:last]).outcome == "failed"
