"""Views of an execution: summary, state at an event, differences, events.

Pure functions of states and events; the CLI prints them and the API sends them. Tested in tests/acceptance/executions/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from noetl.engine.decision.builder import status_of
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution, checksum
from noetl.model.errors import InvalidInput
from noetl.model.events import CANONICAL, EVENT_TYPES, Event
from noetl.model.refs import expanded

ENDED = frozenset({"completed", "failed", "cancelled", "partial"})
_NOTHING = object()
_MOST_BYTES = 2_048  # of a value's JSON; a longer one is cut
_SHOWN = 200  # characters of a value that is cut
_DISPLAYED = {kind.display: name for name, kind in EVENT_TYPES.items()}


def summary(state: Execution, now: int) -> dict[str, Any]:
    """Return the summary of an execution; its keys are a public interface."""
    ended = state.phase == "ended"
    compensated = {} if state.compensated is None else {"compensated": state.compensated}
    return {
        "execution_id": state.execution_id,
        "status": status_of(state),
        "result": expanded(state.result) if ended else None,
        "error": state.error,
        "ctx": state.ctx,
        "steps": step_counts(state),
        "warnings": state.warnings,
        "duration_ms": (state.ended_at if ended else now) - state.started_at,
        **compensated,
    }


def step_counts(state: Execution) -> dict[str, dict[str, int]]:
    """Return the numbers of each step's runs by state, and of its parked tokens.

    `parked` counts tokens that the gate of the step denied. Steps that nothing reached are not among them.
    """
    nothing = {"done": 0, "failed": 0, "skipped": 0, "running": 0, "parked": 0}
    found = {step: nothing | counts for step, counts in state.counts.items()}
    for run in state.runs.values():
        if run.phase != "routing":  # it is done already
            found.setdefault(run.step, dict(nothing))["running"] += 1
    for token in state.tokens.values():
        if token.parked:
            found.setdefault(token.step, dict(nothing))["parked"] += 1
    return found


def view(events: Sequence[Event], seq: int) -> dict[str, Any]:
    """Return the state of an execution after an event, as plain data."""
    if not 0 <= seq <= len(events):
        raise no_event(seq, len(events))
    state = fold(events[0].execution_id if events else "", events[:seq])
    return known(state, events[seq - 1].event_type if seq else None)


def known(state: Execution, last: str | None) -> dict[str, Any]:
    """Return a state as plain data; `last` is the type of its last event."""
    data: dict[str, Any] = msgspec.to_builtins(state, str_keys=True)
    return {"seq": state.seq, "event": last, "status": status_of(state), "checksum": checksum(state), **data}


def no_event(seq: int, last: int) -> InvalidInput:
    """Return the error for a seq that a log does not have."""
    return InvalidInput(f"there is no event {seq}: the log goes from 1 to {last}.")


def changed(before: Any, after: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Yield every place where two pieces of plain data differ."""
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


def shortened(value: Any) -> Any:
    """Return a value, or the beginning of its JSON if that is long.

    Mask it first: of a secret that is cut in two, a mask would not know the first half.
    """
    data = msgspec.json.encode(value)
    if len(data) <= _MOST_BYTES:
        return value
    return {"cut": data[: 4 * _SHOWN].decode(errors="ignore")[:_SHOWN], "bytes": len(data)}


def types(given: Iterable[str]) -> frozenset[str]:
    """Resolve event types by name, older name, display name, or `step.*`."""
    names: set[str] = set()
    for word in given:
        name = CANONICAL.get(word, _DISPLAYED.get(word, word))
        if name.endswith("*"):
            matching = {known for known in EVENT_TYPES if known.startswith(name[:-1])}
        else:
            matching = {name} & EVENT_TYPES.keys()
        if not matching:
            raise InvalidInput(f"there is no event type `{word}`. Event types: {', '.join(EVENT_TYPES)}.")
        names |= matching
    return frozenset(names)


def envelope(event: Event) -> dict[str, Any]:
    """Return an event with every key, and the step it belongs to."""
    data = msgspec.structs.asdict(event)
    data["step"] = step_of(event)
    return data


def step_of(event: Event) -> str | None:
    """Return the step that an event belongs to."""
    if event.step_run_id is not None:
        return event.step_run_id.partition("#")[0]
    if event.entity_type in ("step", "loop"):
        return event.entity_id or None
    step = event.payload.get("step")
    return step if isinstance(step, str) else None
