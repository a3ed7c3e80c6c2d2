"""Schedules and begins step-runs: where their work goes, timers, the list of a loop, steps without a tool.

Steps without a tool end on the server at once. Tested in tests/unit/engine/test_decide.py, test_ending.py and
test_placing.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.dsl.playbook import Step
from noetl.engine import loops
from noetl.engine.decision import DecisionBuilder
from noetl.engine.names import number, render
from noetl.engine.route import Ending, end, failure
from noetl.engine.state import StepRun
from noetl.engine.step_plan import StepPlan
from noetl.engine.work import item, sees
from noetl.expr import TemplateError, first_undefined
from noetl.model.messages import Report


def schedule(d: DecisionBuilder, name: str, payload: dict[str, Any], broken: Mapping[str, Any] | None = None) -> None:
    """Schedule a run and begin it; one that is broken from the start fails at once."""
    known = d.plan.steps[name]
    step = known.step
    if known.sees and step.tasks:
        payload["sees"] = sees(known, d.state)
    if (known.places or d.state.priority) and step.tasks:
        try:
            payload |= _place(d, known, payload["args"])
        except (TemplateError, ValueError) as error:
            broken = broken or failure("template", f"step `{name}` cannot be scheduled: {error}")
    run_id = f"{name}#{payload['number']}"
    d.transitions += 1
    d.emit("step.scheduled", name, payload, step_run_id=run_id)
    if broken is not None:
        run = d.state.runs[run_id]
        d.drop_work(run)
        end(d, run, Ending("error", None, broken))
    else:
        _begin(d, known, d.state.runs[run_id])


def _place(d: DecisionBuilder, known: StepPlan, args: Mapping[str, Any]) -> dict[str, Any]:
    """Give the pool and the priority of a run's work, which may be templates; what is not said is left out.

    A pipeline is one piece of work: of the priorities that its tasks name, the highest counts.
    """
    if not known.places:
        return {"priority": d.state.priority}
    step = known.step
    found: dict[str, Any] = {}
    pool = "" if d.state.pool else _pool(d, step, args)
    found |= {"pool": pool} if pool else {}
    own = [task.spec["priority"].data for task in step.tasks if "priority" in task.spec]
    levels = [_level(_rendered(d, step, given, args)) for given in own or [d.plan.setting("priority", step)]]
    said = [level for level in levels if level is not None]
    level = max(said) if said else d.state.priority
    return found | ({"priority": level} if level else {})


def _level(priority: Any) -> int | None:
    """Give a priority as a number; None where none is said."""
    if priority is None or priority == "":
        return None
    try:
        return int("" if isinstance(priority, bool) else priority)
    except (TypeError, ValueError):
        raise ValueError(f"`priority` is {priority!r}, which is no whole number") from None


def _pool(d: DecisionBuilder, step: Step, args: Mapping[str, Any]) -> str:
    """Give the pool of a run: what its tasks name, else the step by layering. A pipeline runs on one worker."""
    own = [task.spec["pool"].data for task in step.tasks if "pool" in task.spec]
    given = own or [d.plan.setting("pool", step)]
    named: list[str] = []
    for value in given:
        pool = _rendered(d, step, value, args)
        if isinstance(pool, Mapping | list | bool):
            raise ValueError(f"`pool` is {pool!r}, which is no name of a pool")
        named += [str(pool)] if pool is not None and str(pool) not in named else []
    if len(named) > 1:
        said = " and ".join(f"`{pool}`" for pool in named)
        raise ValueError(f"its tasks name the pools {said}, and a pipeline runs on one worker: make a step of each")
    return named[0] if named else ""


def _rendered(d: DecisionBuilder, step: Step, given: Any, args: Mapping[str, Any]) -> Any:
    if not isinstance(given, str):
        return given
    value = render(given, d.scope(args), d.calls)
    missing = first_undefined(value)
    if missing is None:
        return value
    if d.plan.setting("strict_templates", step, True) is not False:
        missing.fail()
    return None


def _begin(d: DecisionBuilder, known: StepPlan, run: StepRun) -> None:
    """Begin a run that was just scheduled: end it at once without a tool, set its deadline, start its loop."""
    if not known.step.tasks:
        end(d, run, Ending("ok"))
        return
    seconds = None if known.deadline is None else number(known.deadline, d.scope(run.args), d.calls)
    if seconds is not None:
        d.set_timer(f"deadline:{run.run_id}", "deadline", d.at + round(seconds * 1000), run)
        if known.is_work:
            work = item(d.plan, d.state, run)
            d.work[work.work_id] = msgspec.structs.replace(d.work[work.work_id], deadline=work.deadline)
    if not known.is_work:
        loops.begin(d, run)


def started(d: DecisionBuilder, run: StepRun, report: Report) -> None:
    """Note that a worker has a run in its hands; its time runs from the first one on."""
    is_first = not run.started_at
    at = _earliest(run, report, d.at) if is_first else None
    d.emit("step.started", run.step, {"worker": report.worker, "epoch": report.epoch}, run, at)
    if is_first and report.ending is None:
        seconds = _timeout(d, run)
        if seconds is not None:
            d.set_timer(f"step:{run.run_id}", "step", run.started_at + round(seconds * 1000), run)


def _earliest(run: StepRun, report: Report, at: int) -> int:
    """Return when a run began: the time of its earliest record, but not before it was scheduled."""
    for record in report.records:
        if record.at < at:
            at = record.at
    return max(at, run.scheduled_at)


def _timeout(d: DecisionBuilder, run: StepRun) -> float | None:
    """Give how long a run may take: the shortest that its step names, in seconds from its start."""
    given = d.plan.steps[run.step].timeouts
    scope = d.scope(run.args)
    return min((found for value in given if (found := number(value, scope, d.calls)) is not None), default=None)
