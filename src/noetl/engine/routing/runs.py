"""Schedules step-runs: placement, timers, loops, steps without a tool.

A step without a tool ends at once. Tested in tests/unit/engine/handlers/test_decide.py, test_ending.py and test_placing.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.dsl.tree.playbook import Step
from noetl.engine.decision.builder import DecisionBuilder
from noetl.engine.decision.scope import number, render
from noetl.engine.decision.work import item, sees
from noetl.engine.plan.step_plan import StepPlan
from noetl.engine.routing import loops
from noetl.engine.routing.route import Ending, end, failure
from noetl.engine.state.execution import StepRun
from noetl.expr import TemplateError, first_undefined
from noetl.model.messages import Report


def schedule(
    d: DecisionBuilder,
    name: str,
    payload: dict[str, Any],
    broken: Mapping[str, Any] | None = None,
    skipped: bool = False,
) -> None:
    """Schedule a run and begin it; `broken` fails it at once, `skipped` ends it."""
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
    d.count_transition()
    d.emit("step.scheduled", name, payload, step_run_id=run_id)
    if broken is not None:
        run = d.state.runs[run_id]
        d.drop_work(run)
        end(d, run, Ending("error", None, broken))
    elif skipped:
        run = d.state.runs[run_id]
        d.drop_work(run)
        d.emit("step.skipped", name, {}, run, None, "skipped")
        end(d, run, Ending("skipped"))
    else:
        _begin(d, known, d.state.runs[run_id])


def _place(d: DecisionBuilder, known: StepPlan, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pool of a run's work, and the highest priority of its tasks."""
    if not known.places:
        return {"priority": d.state.priority}
    step = known.step
    placement: dict[str, Any] = {}
    pool = "" if d.state.pool else _pool(d, step, args)
    placement |= {"pool": pool} if pool else {}
    own = [task.spec["priority"].data for task in step.tasks if "priority" in task.spec]
    levels = [_level(_render_setting(d, step, value, args)) for value in own or [d.plan.setting("priority", step)]]
    set_levels = [level for level in levels if level is not None]
    level = max(set_levels) if set_levels else d.state.priority
    return placement | ({"priority": level} if level else {})


def _level(priority: Any) -> int | None:
    if priority is None or priority == "":
        return None
    try:
        return int("" if isinstance(priority, bool) else priority)
    except (TypeError, ValueError):
        raise ValueError(f"`priority` is {priority!r}, which is no whole number") from None


def _pool(d: DecisionBuilder, step: Step, args: Mapping[str, Any]) -> str:
    own = [task.spec["pool"].data for task in step.tasks if "pool" in task.spec]
    values = own or [d.plan.setting("pool", step)]
    named: list[str] = []
    for value in values:
        pool = _render_setting(d, step, value, args)
        if isinstance(pool, Mapping | list | bool):
            raise ValueError(f"`pool` is {pool!r}, which is no name of a pool")
        named += [str(pool)] if pool is not None and str(pool) not in named else []
    if len(named) > 1:
        names = " and ".join(f"`{pool}`" for pool in named)
        raise ValueError(f"its tasks name the pools {names}, and a pipeline runs on one worker: make a step of each")
    return named[0] if named else ""


def _render_setting(d: DecisionBuilder, step: Step, template_or_value: Any, args: Mapping[str, Any]) -> Any:
    if not isinstance(template_or_value, str):
        return template_or_value
    value = render(template_or_value, d.scope(args), d.calls)
    missing = first_undefined(value)
    if missing is None:
        return value
    if d.plan.setting("strict_templates", step, True) is not False:
        missing.fail()
    return None


def _begin(d: DecisionBuilder, known: StepPlan, run: StepRun) -> None:
    if not known.step.tasks:
        end(d, run, Ending("ok"))
        return
    seconds = None if known.deadline is None else number(known.deadline, d.scope(run.args), d.calls)
    if seconds is not None:
        d.set_timer(f"deadline:{run.run_id}", "deadline", d.at + round(seconds * 1000), run)
        if known.is_work:
            work = item(d.plan, d.state, run)
            d.queue(msgspec.structs.replace(d.work[work.work_id], deadline=work.deadline))
    if not known.is_work:
        loops.begin(d, run)


def started(d: DecisionBuilder, run: StepRun, report: Report) -> None:
    """Record that a worker started a run; its time-out counts from its first start."""
    is_first = not run.started_at
    at = _earliest(run, report, d.at) if is_first else None
    payload: dict[str, Any] = {"worker": report.worker, "epoch": report.epoch}
    if report.runtime:
        payload["runtime"] = report.runtime
    d.emit("step.started", run.step, payload, run, at)
    if is_first and report.ending is None:
        seconds = _timeout(d, run)
        if seconds is not None:
            d.set_timer(f"step:{run.run_id}", "step", run.started_at + round(seconds * 1000), run)


def _earliest(run: StepRun, report: Report, at: int) -> int:
    """Return when a run began: its earliest record, not before its scheduling."""
    for record in report.records:
        if record.at < at:
            at = record.at
    return max(at, run.scheduled_at)


def _timeout(d: DecisionBuilder, run: StepRun) -> float | None:
    limits = d.plan.steps[run.step].timeouts
    scope = d.scope(run.args)
    return min((seconds for value in limits if (seconds := number(value, scope, d.calls)) is not None), default=None)
