"""Cuts the slice of the state that a step's work needs: only what its templates can read is sent.

Which paths they read is known from the compiled templates. A name that is read whole, or by a key that is only known
when it runs, widens the slice to that scope. What changes while a run is under way (`ctx`, results of steps) is kept with
the run when it is scheduled, so that every delivery gets the same. Tested in tests/unit/engine/test_slice.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.dsl.diagnostic import nearest
from noetl.engine.state import Execution, StepRun, see
from noetl.engine.step_plan import Paths, StepPlan


def sees(known: StepPlan, state: Execution) -> dict[str, Any]:
    """Name what a run of a step sees of the state that changes: of `ctx`, and which steps."""
    if known.reads_all:
        return {"ctx": True, "steps": True, "statuses": True}
    reads = known.reads
    found: dict[str, Any] = {"statuses": True} if known.asks_for_steps else {}
    names = _names(state.ctx, reads, "ctx", "vars")
    kept = True if names is None else sorted(names & state.ctx.keys())
    steps = sorted({str(path[0]) for path in reads} & state.ended.keys())
    return found | ({"ctx": kept} if kept else {}) | ({"steps": steps} if steps else {})


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
        reads, everything = known.reads, known.reads_all
        seen = run.seen or see(state, sees(known, state))
        sent["workload"] = dict(state.workload) if everything else _part(state.workload, reads, "workload")
        sent["ctx"] = dict(seen.ctx) if everything else _part(seen.ctx, reads, "ctx", "vars")
        sent["steps"] = seen.steps
        sent["statuses"] = seen.statuses
    for completed in state.completed if run.compensates is not None else ():
        if completed.run_id == run.compensates:
            sent["steps"] = {**sent["steps"], completed.step: completed.result}
    return sent


def _part(data: Mapping[str, Any], reads: Paths, *scope: str) -> dict[str, Any]:
    if not data or not reads:
        return {}
    names = _names(data, reads, *scope)
    return dict(data) if names is None else {key: value for key, value in data.items() if key in names}


def _names(data: Mapping[str, Any], reads: Paths, *scope: str) -> set[str] | None:
    """Give the keys that may be read; None where it is all of them."""
    names = {str(path[0]) for path in reads}
    for path in reads:
        if path[0] in scope:
            if len(path) == 1:
                return None
            names.add(str(path[1]))
            meant = nearest(str(path[1]), data) if path[1] not in data else None
            if meant is not None:
                names.add(meant)  # for the message that says what is not there
    return names
