"""Cuts the slice of the state that a step's work needs: only what its templates can read is sent.

Which paths they read is known from the compiled templates. A name that is read whole, or by a key that is only known
when it runs, widens the slice to that scope. What changes while a run is under way (`ctx`, results of steps) is kept with
the run when it is scheduled, so that every delivery gets the same. Tested in tests/unit/engine/test_slice.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from noetl.dsl.diagnostic import nearest
from noetl.engine.state import Execution, StepRun, see
from noetl.engine.step_plan import Part, StepPlan


def sees(known: StepPlan, state: Execution) -> dict[str, Any]:
    """Name what a run of a step sees of the state that changes: of `ctx`, and which steps."""
    if known.reads_all:
        return {"ctx": True, "steps": True, "statuses": True}
    found: dict[str, Any] = {"statuses": True} if known.asks_for_steps else {}
    kept = True if known.ctx.is_whole else sorted(_names(state.ctx, known.ctx) & state.ctx.keys())
    if kept:
        found["ctx"] = kept
    steps = sorted(known.roots & state.ended.keys())
    if steps:
        found["steps"] = steps
    return found


def scopes(known: StepPlan, state: Execution, run: StepRun) -> dict[str, Any]:
    """Give the scopes that are sent with a run's work."""
    sent: dict[str, Any] = {
        "workload": {},
        "ctx": {},
        "args": run.args,
        "steps": {},
        "statuses": {},
        "execution_id": state.execution_id,
        "job": {"uuid": state.execution_id},
    }
    if state.iter is not None:
        sent["iter"] = {"parent": state.iter}
    if known.sees:
        seen = run.seen or see(state, sees(known, state))
        sent["workload"] = dict(state.workload) if known.reads_all else _part(state.workload, known.workload)
        sent["ctx"] = dict(seen.ctx) if known.reads_all else _part(seen.ctx, known.ctx)
        sent["steps"] = seen.steps
        sent["statuses"] = seen.statuses
    for completed in state.completed if run.compensates is not None else ():
        if completed.run_id == run.compensates:
            sent["steps"] = {**sent["steps"], completed.step: completed.result}
    return sent


def _part(data: Mapping[str, Any], part: Part) -> dict[str, Any]:
    if not data:
        return {}
    if part.is_whole:
        return dict(data)
    names = _names(data, part)
    return {key: value for key, value in data.items() if key in names}


def _names(data: Mapping[str, Any], part: Part) -> Set[str]:
    """Give the names that may be read as keys of a scope, and of a key that is not there the one that was meant."""
    names = part.names
    for key in part.keys:
        meant = nearest(key, data) if key not in data else None
        if meant is not None:
            names |= {meant}  # for the message that says what is not there
    return names
