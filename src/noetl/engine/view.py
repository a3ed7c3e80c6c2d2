"""What people and programs see of an execution: its status, its summary, its state at any event, its events.

Pure looks at states and events; how they are printed or sent is for others. Tested in tests/acceptance/executions/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from noetl.engine.decision import status_of
from noetl.engine.evolve import fold
from noetl.engine.state import Execution, checksum
from noetl.model.errors import InvalidInput
from noetl.model.events import CANONICAL, EVENT_TYPES, Event

ENDED = frozenset({"completed", "failed", "cancelled", "partial"})
_NOTHING = object()
_DISPLAYED = {kind.display: name for name, kind in EVENT_TYPES.items()}


def summary(state: Execution, now: int) -> dict[str, Any]:
    """Give what programs read of an execution; its keys are an interface."""
    ended = state.phase == "ended"
    undone = {} if state.compensated is None else {"compensated": state.compensated}
    return {
        "execution_id": state.execution_id,
        "status": status_of(state),
        "result": state.result if ended else None,
        "error": state.error,
        "ctx": state.ctx,
        "steps": state.counts,
        "duration_ms": (state.ended_at if ended else now) - state.started_at,
        **undone,
    }


def view(events: Sequence[Event], seq: int) -> dict[str, Any]:
    """Give everything that is known of an execution after an event, as plain data."""
    if not 0 <= seq <= len(events):
        raise no_event(seq, len(events))
    state = fold(events[0].execution_id if events else "", events[:seq])
    return known(state, events[seq - 1].event_type if seq else None)


def known(state: Execution, last: str | None) -> dict[str, Any]:
    """Give a state as plain data; `last` is the type of the event that led to it."""
    data: dict[str, Any] = msgspec.to_builtins(state, str_keys=True)
    return {"seq": state.seq, "event": last, "status": state.status, "checksum": checksum(state), **data}


def no_event(seq: int, last: int) -> InvalidInput:
    """Say that a log has no such event."""
    return InvalidInput(f"there is no event {seq}: the log goes from 1 to {last}.")


def changed(before: Any, after: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Give every place where two pieces of plain data differ."""
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            yield from changed(
                before.get(key, _NOTHING), after.get(key, _NOTHING), f"{path}.{key}" if path else str(key)
            )
        return
    change: dict[str, Any] = {"path": path}
    change |= {"before": before} if before is not _NOTHING else {}
    yield change | ({"after": after} if after is not _NOTHING else {})


def types(given: Iterable[str]) -> frozenset[str]:
    """Give the event types that are meant: by name, older name, display name, or `step.*`."""
    found: set[str] = set()
    for word in given:
        name = CANONICAL.get(word, _DISPLAYED.get(word, word))
        if name.endswith("*"):
            matching = {known for known in EVENT_TYPES if known.startswith(name[:-1])}
        else:
            matching = {name} & EVENT_TYPES.keys()
        if not matching:
            raise InvalidInput(f"there is no event type `{word}`; these there are: {', '.join(EVENT_TYPES)}.")
        found |= matching
    return frozenset(found)


def envelope(event: Event) -> dict[str, Any]:
    """Give an event as programs read it: every key, and the step it belongs to."""
    found = msgspec.structs.asdict(event)
    found["step"] = step_of(event)
    return found


def step_of(event: Event) -> str | None:
    """Give the step that an event belongs to."""
    if event.step_run_id is not None:
        return event.step_run_id.partition("#")[0]
    if event.entity_type in ("step", "loop"):
        return event.entity_id or None
    named = event.payload.get("step")
    return named if isinstance(named, str) else None
