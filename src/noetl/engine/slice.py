"""Cuts the slice of the state that a step's work needs: only what its templates can read is sent.

Which paths they read is known from the compiled templates. A name that is read whole, or by a key that is only known
when it runs, widens the slice to that scope. Tested in tests/unit/engine/test_slice.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.dsl.diagnostic import nearest
from noetl.engine.plan import Plan
from noetl.engine.state import Execution, StepRun


def scopes(plan: Plan, state: Execution, run: StepRun) -> dict[str, Any]:
    """Give the scopes that are sent with a run's work."""
    step = plan.step(run.step)
    reads = plan.reads(step)
    everything = plan.reads_all(step)
    roots = {str(path[0]) for path in reads}
    ended = state.ended if everything else {name: state.ended[name] for name in roots if name in state.ended}
    results = {name: found.result for name, found in ended.items() if found.status != "skipped"}
    for completed in state.completed if run.compensates is not None else ():
        if completed.run_id == run.compensates:
            results[completed.step] = completed.result
    if everything:
        workload, ctx = dict(state.workload), dict(state.ctx)
    else:
        workload, ctx = _part(state.workload, reads, "workload"), _part(state.ctx, reads, "ctx", "vars")
    sent: dict[str, Any] = {
        "workload": workload,
        "ctx": ctx,
        "args": run.args,
        "steps": results,
        "statuses": {name: found.status for name, found in state.ended.items()} if plan.asks_for_steps(step) else {},
        "execution_id": state.execution_id,
        "job": {"uuid": state.execution_id},
    }
    if state.iter is not None:
        sent["iter"] = {"parent": state.iter}
    return sent


def _part(data: Mapping[str, Any], reads: frozenset[tuple[str | int, ...]], *scope: str) -> dict[str, Any]:
    names = {path[0] for path in reads}
    for path in reads:
        if path[0] in scope:
            if len(path) == 1:
                return dict(data)
            names.add(path[1])
            meant = nearest(str(path[1]), data) if path[1] not in data else None
            if meant is not None:
                names.add(meant)  # for the message that says what is not there
    return {key: value for key, value in data.items() if key in names}
