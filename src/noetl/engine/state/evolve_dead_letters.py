"""Applies the events of dead letters to a state: retries and repairs.

Part of the fold: decides nothing. Tested in tests/unit/engine/handlers/test_redrive.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.engine.state import evolve_loops as loops
from noetl.engine.state.dead_letters import letter_id
from noetl.engine.state.execution import Ended, Execution, Seen, StepRun
from noetl.engine.state.lineage import forget
from noetl.model.events import Event
from noetl.model.letters import DISCARDED, PENDING, REPLAYED, REPLAYING
from noetl.model.manifest import manifest
from noetl.model.refs import is_manifest

Payload = Mapping[str, Any]


def replayed(state: Execution, event: Event, payload: Payload) -> None:
    """Create the run that retries a letter's work."""
    work = payload["work"]
    state.numbers["replay"] = state.numbers.get("replay", 0) + 1
    of = {name: work[name] for name in _COPIED if name in work} | {"run_id": payload["of"], "index": event.iteration}
    of |= {"patch": payload["patch"]} if "patch" in payload else {}
    run = StepRun(
        str(event.step_run_id),
        event.entity_id,
        work["number"],
        dict(work.get("args", {})),
        {},
        event.seq,
        event.timestamp,
        role="replay",
        compensates=work.get("compensates"),
        seen=msgspec.convert(work["seen"], Seen) if work.get("seen") is not None else None,
        pool=work.get("pool", ""),
        priority=work.get("priority", 0),
        of=of,
    )
    state.replays[run.run_id] = run
    _set_status(state, event, payload, REPLAYING)


_COPIED = ("item", "source", "total", "key", "role", "task", "attempts", "first_seen", "replays")


def returned(state: Execution, event: Event, payload: Payload) -> None:
    """Set a letter back to pending after a failed retry."""
    _leave(state, event)
    _set_status(state, event, payload, PENDING)


def discarded(state: Execution, event: Event, payload: Payload) -> None:
    """Close a letter as discarded."""
    _set_status(state, event, payload, DISCARDED)


def step_repaired(state: Execution, event: Event, payload: Payload) -> None:
    """Turn a failed step-run or compensation into a successful one."""
    run = _leave(state, event)
    _set_status(state, event, payload, REPLAYED)
    of, result = payload["of"], payload.get("result")
    for completed in state.completed if run is not None else ():
        if run is not None and completed.run_id == run.compensates:
            completed.state = "done"
            state.compensated = all(one.state == "done" for one in state.completed)
    ended = state.ended.get(event.entity_id)
    if ended is not None and ended.run_id == of:
        state.ended[event.entity_id] = Ended(of, "ok", result, None, ended.seq)


def item_repaired(state: Execution, event: Event, payload: Payload) -> None:
    """Count a repaired item in the running loop, or in an ended loop's result."""
    _leave(state, event)
    _set_status(state, event, payload, REPLAYED)
    of, index = payload["of"], event.iteration or 0
    owner = state.runs.get(of)
    if owner is not None and owner.loop is not None:
        loops.repaired(state, owner, index, event.status or "ok", payload)
        return
    ended = state.ended.get(event.entity_id)
    if ended is not None and ended.run_id == of and isinstance(ended.result, Mapping) and "stats" in ended.result:
        _amend(state, ended, event, payload, index)
    if of in state.partial:
        state.partial[of] -= 1
        if not state.partial[of]:
            del state.partial[of]
    if not state.partial and state.outcome == "partial" and state.phase != "ended":
        state.outcome = None


def _amend(state: Execution, ended: Ended, event: Event, payload: Payload, index: int) -> None:
    counted = "skipped" if event.status == "skipped" else "succeeded"
    stats = dict(ended.result["stats"])
    stats["failed"] -= 1
    stats[counted] += 1
    result = {**ended.result, "results": _results(ended.result["results"], payload, index), "stats": stats}
    last = max((one for one in state.ended.values() if one.status == "ok"), key=lambda one: one.seq)
    if last is ended and state.result == ended.result:  # it is also the result of the execution
        state.result = result
    state.ended[event.entity_id] = Ended(ended.run_id, ended.status, result, ended.error, ended.seq)


def _results(results: Any, payload: Payload, index: int) -> Any:
    if is_manifest(results):
        if "parts" not in payload:
            return results
        rest = {name: results[name] for name in ("store", "scope", "expires_at") if name in results}
        return manifest(results["ref"], _spliced(results["parts"], payload), results["strategy"], **rest)
    amended = list(results)
    if index < len(amended):
        amended[index] = payload.get("result")
    return amended


def _spliced(parts: Any, payload: Payload) -> list[dict[str, Any]]:
    at = payload["at"]
    return [*parts[:at], *payload["parts"], *parts[at + 1 :]]


def corrected(state: Execution, _event: Event, payload: Payload) -> None:
    """Turn a partial execution into a complete one."""
    state.outcome = payload["status"]


def poisoned(state: Execution, event: Event, payload: Payload) -> None:
    """Set the letter of a message to pending."""
    _set_status(state, event, payload, PENDING)


def released(state: Execution, event: Event, payload: Payload) -> None:
    """Mark the letter of a message as being retried."""
    _set_status(state, event, payload, REPLAYING)


def settled(state: Execution, event: Event, payload: Payload) -> None:
    """Close the letter of a message that has been decided."""
    _set_status(state, event, payload, REPLAYED)


def _leave(state: Execution, event: Event) -> StepRun | None:
    run = state.replays.pop(str(event.step_run_id), None)
    if run is not None:
        forget(state, run.run_id)
    return run


def _set_status(state: Execution, event: Event, payload: Payload, status: str) -> None:
    state.letters[letter_id(event.execution_id, str(payload["of"]), event.iteration)] = status
