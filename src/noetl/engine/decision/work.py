"""Derives the queue from events: the work of a scheduled run or range.

A work item carries the slice of the state that its templates can read. `ctx` and results of steps are kept with the run when it
is scheduled, so every delivery gets the same. Tested in tests/unit/engine/handlers/test_decide.py, test_loops.py and
test_slice.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from noetl.dsl.diagnostic import nearest
from noetl.engine.plan.patches import patched_value
from noetl.engine.plan.plan import Plan
from noetl.engine.plan.step_plan import Part, StepPlan
from noetl.engine.state.execution import Execution, Loop, StepRun, see
from noetl.model.events import Event
from noetl.model.ids import job
from noetl.model.manifest import within
from noetl.model.work import NEW, Chunk, WorkItem
from noetl.trace_context import dispatch_span, trace_of

WORK_EVENTS = frozenset({"step.scheduled", "loop.iteration.scheduled", "loop.claim.scheduled", "dlq.replayed"})
REPLAYED = "replayed"  # the only piece of a retried item


def work_id(state: Execution, run: StepRun, chunk: str | None = None) -> str:
    """Return the id of a run's work item, or of one piece of its loop."""
    return f"{state.execution_id}:{run.run_id}" if chunk is None else f"{state.execution_id}:{run.run_id}:{chunk}"


def first_number(run: StepRun) -> int:
    """Return the number of a run's work: a retried compensation has the same keys."""
    return run.number - run.attempt + 1


def piece_of(run: StepRun) -> str | None:
    """Return the piece of a retried dead letter: an item has one, a run none."""
    return REPLAYED if run.of is not None and run.of.get("index") is not None else None


def work_for(plan: Plan, event: Event, state: Execution) -> WorkItem | None:
    """Return the work that an event queues, if any; `state` is the one after it."""
    run = state.runs.get(event.step_run_id or "")
    if run is None:
        replay = state.replays.get(event.step_run_id or "")
        return None if replay is None else item(plan, state, replay)
    if event.event_type != "step.scheduled":
        return item(plan, state, run, event.payload["chunk"])
    if plan.steps[run.step].is_work:
        return item(plan, state, run, None, event.payload.get("available_at", 0))
    return None


def item(plan: Plan, state: Execution, run: StepRun, chunk: str | None = None, available_at: int = 0) -> WorkItem:
    """Build the work item of a run, or of one piece of its loop."""
    if run.of is not None:
        return _retried(plan, state, run, run.of)
    known = plan.steps[run.step]
    part, resume, loop = None, run.resume, run.loop
    if chunk is not None and loop is not None:
        part, resume = _chunk(loop, chunk), loop.pieces[chunk].resume
    return WorkItem(
        work_id(state, run, chunk),
        state.execution_id,
        run.run_id,
        run.step,
        first_number(run),
        plan.playbook_hash,
        scopes(known, state, run),
        part,
        resume,
        run.role,
        state.pool or run.pool,
        run.priority,
        available_at,
        _deadline(state, run) if state.timers else None,
        known.requires,
        flow=_begun(state) if _has_begun(plan, state, run, part, resume) else f"{state.path}{NEW}",
        weight=plan.weight,
        limits=_limits(plan, known, state.pool or run.pool) if plan.work_limits else (),
        trace_context=trace_context(plan, state, run, chunk) if state.trace or plan.tracing is not None else "",
    )


def trace_context(plan: Plan, state: Execution, run: StepRun, chunk: str | None = None) -> str:
    """Return the traceparent of a run or of a piece of its loop; empty without one."""
    found = trace_of(state.execution_id, state.trace, state.workload, plan.tracing)
    return "" if found is None else found.to(dispatch_span(state.execution_id, run.run_id, chunk))


def _limits(plan: Plan, known: StepPlan, pool: str) -> tuple[str, ...]:
    """Return the limits of the server that work counts for while it is leased."""
    name = f"pool {pool}"
    return (*known.kinds, name) if name in plan.work_limits else known.kinds


def _begun(state: Execution) -> str:
    """Return the flow of an execution that has begun."""
    return f"{state.path}#{state.execution_id}"


def _has_begun(plan: Plan, state: Execution, run: StepRun, part: Chunk | None, resume: Any) -> bool:
    """Return whether work is not the first of its execution: new ones go behind."""
    if run.number > 1 or run.step != plan.entry or state.parent is not None:
        return True
    return resume is not None or (part is not None and part.start > 0)


def open_work(plan: Plan, state: Execution, available_at: Mapping[str, int]) -> list[tuple[int, WorkItem]]:
    """Return the work of all runs in flight with its time of scheduling, oldest first."""
    items: list[tuple[int, WorkItem]] = []
    for run in state.runs.values():
        loop = run.loop
        if run.phase not in ("scheduled", "started"):
            continue
        if loop is not None:
            items += [(piece.at, item(plan, state, run, name)) for name, piece in loop.pieces.items()]
        elif plan.is_work(run.step):
            at = available_at.get(run.run_id, 0)
            items.append((run.scheduled_at, item(plan, state, run, available_at=at)))
    items += [(run.scheduled_at, item(plan, state, run)) for run in state.replays.values() if run.phase != "suspended"]
    return sorted(items, key=lambda pair: pair[0])


def _deadline(state: Execution, run: StepRun) -> int | None:
    deadlines = [timer.at for timer in state.timers.values() if timer.run_id == run.run_id and timer.cause != "wake"]
    return min(deadlines, default=None)


def _retried(plan: Plan, state: Execution, run: StepRun, of: Mapping[str, Any]) -> WorkItem:
    index, part = of.get("index"), None
    if index is not None:
        near = of.get("source")
        items = () if near is not None else (of.get("item"),)
        keys = (of["key"],) if of.get("key") is not None else ()
        part = Chunk(
            REPLAYED, index, items, of.get("total"), keys=keys, count=1 if near is not None else 0, source=near
        )
    known, patch = plan.steps[run.step], of.get("patch") or {}
    return WorkItem(
        work_id(state, run, piece_of(run)),
        state.execution_id,
        run.run_id,
        run.step,
        run.number,
        plan.playbook_hash,
        scopes(known, state, run) | {"args": patched_value(run.args, patch, "args")},
        part,
        run.resume,
        of.get("role", "step"),
        state.pool or run.pool,
        run.priority,
        deadline=_deadline(state, run),
        requires=known.requires,
        patch={"task": of.get("task", ""), "values": patch} if patch else None,
        flow=_begun(state),
        weight=plan.weight,
        limits=_limits(plan, known, state.pool or run.pool) if plan.work_limits else (),
        trace_context=trace_context(plan, state, run, None) if state.trace or plan.tracing is not None else "",
    )


def _chunk(loop: Loop, chunk: str) -> Chunk:
    piece = loop.pieces[chunk]
    total = None if loop.cursor else loop.total
    if piece.claim:
        return Chunk(chunk, piece.start, (), total, claim=True, frame=loop.frame)
    first, last = min(piece.pending), max(piece.pending)  # items that ended are not issued again
    is_whole = last + 1 - first == len(piece.pending)
    ended = () if is_whole else tuple(index for index in range(first, last) if index not in piece.pending)
    keys = tuple(loop.names.get(index) for index in range(first, last + 1)) if loop.cursor else ()
    here = loop.here
    if here is None:  # the list is stored: the worker reads its range
        near = within(loop.items, first, last + 1 - first)
        return Chunk(chunk, first, (), total, piece.width, ended, count=last + 1 - first, source=near)
    return Chunk(chunk, first, tuple(here[first : last + 1]), total, piece.width, ended, keys)


def sees(known: StepPlan, state: Execution) -> dict[str, Any]:
    """Return which parts of `ctx` and which steps a run of a step reads."""
    if known.reads_all:
        return {"ctx": True, "steps": True, "statuses": True}
    paths: dict[str, Any] = {"statuses": True} if known.asks_for_steps else {}
    ctx_keys = True if known.ctx.is_whole else sorted(_names(state.ctx, known.ctx) & state.ctx.keys())
    if ctx_keys:
        paths["ctx"] = ctx_keys
    steps = sorted(known.roots & state.ended.keys())
    if steps:
        paths["steps"] = steps
    return paths


def scopes(known: StepPlan, state: Execution, run: StepRun) -> dict[str, Any]:
    """Return the scopes that a run's work carries."""
    sent: dict[str, Any] = {
        "workload": {},
        "ctx": {},
        "args": run.args,
        "steps": {},
        "statuses": {},
        "execution_id": state.execution_id,
        "job": job(state.execution_id),
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
    names = part.names
    for key in part.keys:
        nearest_key = nearest(key, data) if key not in data else None
        if nearest_key is not None:
            names |= {nearest_key}  # for the error message about the missing key
    return names
