"""Warnings: what an execution passed over without failing.

They tell of conditions that could not be evaluated, values of `set` that were skipped, and arguments that were bound twice.
A state keeps the first ones. Tested in tests/unit/engine/state/test_warnings.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from noetl.engine.state.execution import Execution
from noetl.model.events import Event

_FALSE: Final = "cannot be evaluated, so it counts as false"


def warnings_in(event: Event) -> list[str]:
    """Return the warnings that an event tells of."""
    payload = event.payload
    match event.event_type:
        case "next.evaluated" if not payload.get("broken"):  # else the step fails with it
            failed = [arc for arc in payload.get("arcs", ()) if arc.get("error")]
            return [f"The condition of the arc to `{arc['step']}` {_FALSE}: {arc['error']}" for arc in failed]
        case "policy.admit.evaluated":
            return [f"A condition of the gate {_FALSE}: {error}" for error in payload.get("errors", ())]
        case "policy.task.evaluated":
            rules = [f"A rule of task `{event.entity_id}` {_FALSE}: {one}" for one in payload.get("problems", ())]
            return [*rules, *_skipped(payload.get("skipped", ()))]
        case "ctx.patched":
            return _skipped(payload.get("skipped", ()))
        case "step.scheduled":
            return [f"{one[:1].upper()}{one[1:]}." for one in payload.get("warnings", ())]
    return []


def _skipped(writes: Iterable[dict[str, str]]) -> list[str]:
    return [f"`set: {one['key']}` was skipped after the failure: {one['reason']}" for one in writes]


def keep(state: Execution, event: Event) -> None:
    """Keep the warnings of an event."""
    step = (event.step_run_id or str(event.payload.get("by") or event.entity_id)).partition("#")[0]
    for message in warnings_in(event):
        state.warn(step, message)
