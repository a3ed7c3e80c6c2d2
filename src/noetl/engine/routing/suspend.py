"""Suspensions: a waiting pipeline holds no worker, and resumes as the same run.

A worker goes on with it, unless nothing is left to do: a pipeline whose last task was the wait ends here, in the commit
that wakes it. Early signals are kept; each satisfies one `wait`, oldest first. Tested in
tests/unit/engine/routing/test_suspend.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from msgspec import MsgspecError
from msgspec.structs import replace

from noetl.engine.decision.builder import DecisionBuilder
from noetl.engine.decision.needs_load import Resolved
from noetl.engine.decision.work import first_number, trace_context, work_id
from noetl.engine.pipeline.pipeline import restore
from noetl.engine.plan.plan import Plan
from noetl.engine.routing import loop_results, loops
from noetl.engine.routing.route import Ending, end
from noetl.engine.routing.slots import held_groups
from noetl.engine.state.execution import Execution, StepRun, Suspended
from noetl.engine.tasks.actions import Finished
from noetl.engine.tasks.run_info import RunInfo, Scopes, for_step, info_for
from noetl.engine.tasks.task_plan import Layered
from noetl.model.ids import ExecutionId, snowflake
from noetl.model.messages import Cancel, ItemEnd, Record, Start, Suspension
from noetl.model.refs import expanded, holds_ref

_FAULTS = (MsgspecError, KeyError, TypeError, ValueError, AttributeError, IndexError)
_SELDOM = frozenset({"call", "deadline"})  # keys of snapshots whose wait is inside a call, or has a time limit


def suspend(d: DecisionBuilder, run: StepRun, request: Suspension, chunk: str | None = None) -> None:
    """Suspend a pipeline until its timer, signal or child."""
    index = request.index if run.loop is not None else None
    payload: dict[str, Any] = {"cause": request.cause, "pipeline": request.pipeline}
    payload |= {"chunk": chunk} if chunk is not None else {}
    payload |= {"until": request.until} if request.until is not None else {}
    payload |= {"signal": request.signal} if request.signal is not None else {}
    child_id = child_execution(d.state, d.at) if request.child is not None else None
    payload |= {"child": request.child, "child_id": child_id} if child_id else {}
    d.emit("step.suspended", run.step, payload, run=run, iteration=index)
    if request.until is not None:
        d.set_timer(timer_id(run, index, civil=request.civil), "wake", request.until, run, index)
    if child_id is not None and request.child is not None:
        _send_start(d, run, index, child_id, request.child)
    if request.signal is not None and d.state.signals.get(request.signal):
        deliver(d, request.signal)


def timer_id(run: StepRun, index: int | None, *, civil: bool = False) -> str:
    """Return the name of the timer of a wait; `until:` names points of civil time."""
    stem = f"until:{run.run_id}" if civil else f"wake:{run.run_id}"
    return stem if index is None else f"{stem}:{index}"


def child_execution(state: Execution, at: int) -> ExecutionId:
    """Return the id of the next child, hashed so that parents do not collide."""
    number = state.numbers.get("child", 0) + 1
    digest = int.from_bytes(blake2b(f"{state.execution_id}:{number}".encode(), digest_size=4).digest(), "big")
    return snowflake(at + number, digest, digest >> 10)


def _send_start(
    d: DecisionBuilder, run: StepRun, index: int | None, child_id: ExecutionId, child: Mapping[str, Any]
) -> None:
    d.emit("child.started", child_id, {"path": child.get("path"), "child_id": child_id}, run=run, iteration=index)
    d.send(child_id, start_of_child(d.plan, d.state, run, index, child, d.message_id(), d.resolved))


def start_of_child(
    plan: Plan,
    state: Execution,
    run: StepRun,
    index: int | None,
    child: Mapping[str, Any],
    message_id: str,
    resolved: Resolved | None = None,
) -> Start:
    """Return the message that starts a child of a run, or of one item of its loop."""
    parent: dict[str, Any] = {"execution_id": state.execution_id, "run_id": run.run_id}
    held = held_groups(state)
    parent |= {"groups": held} if held else {}
    parent |= {"return_step": child["return_step"]} if child.get("return_step") else {}
    parent |= {"version": child["version"]} if child.get("version") is not None else {}
    iteration = state.iter
    if index is not None and run.loop is not None:
        loop = plan.step(run.step).loop
        iteration = {
            (loop.iterator if loop else "item"): loop_results.item(run.loop, index, resolved),
            "index": index,
            "total": None if run.loop.cursor else run.loop.total,
            "first": index == 0,
            "last": None if run.loop.cursor else index == run.loop.total - 1,
            "parent": state.iter,
        }
    payload = child.get("payload") or {}
    path = str(child.get("path", ""))
    trace = trace_context(plan, state, run) if state.trace or plan.tracing is not None else ""
    playbook = str(child.get("playbook", ""))
    return Start(message_id, path, playbook, payload, parent, iteration, pool=state.pool, trace=trace)


def deliver(d: DecisionBuilder, name: str) -> None:
    """Deliver kept signals to the pipelines that wait for them, oldest wait first."""
    while d.state.signals.get(name):
        waiting = [one for one in _suspended(d.state) if one[2].signal == name]
        if not waiting:
            return
        run, index, _ = min(waiting, key=lambda one: one[2].seq)
        wake(d, run, index, {"by": "signal", "name": name, "data": d.state.signals[name][0]}, signal=name)


def wake(d: DecisionBuilder, run: StepRun, index: int | None, by: Mapping[str, Any], signal: str | None = None) -> None:
    """Continue a suspended pipeline as the same run, with what woke it."""
    held = run.suspended if index is None else run.loop.suspended.get(index) if run.loop is not None else None
    if held is None:
        return
    timer = timer_id(run, index, civil=timer_id(run, index, civil=True) in d.state.timers)
    more: dict[str, Any] = {"timer": timer}
    more |= {"signal": signal} if signal is not None else {}
    if held.child_id is not None and by.get("by") != "child":  # a time-out: the child is no longer needed
        d.send(held.child_id, Cancel(d.message_id(), f"its parent {d.state.execution_id} waits no longer"))
    finished = _finished(d, run, index, held, by)
    if finished is not None:
        ended, records = finished
        d.emit("step.woken", run.step, more, run=run, iteration=index)
        d.record(run, records)
        _end(d, run, index, ended)
        return
    more["resume"] = {"pipeline": held.pipeline, "wake": by}
    if index is None:
        d.emit("step.scheduled", run.step, more, run=run)
    else:
        loops.issue(d, run, index, 1, 1, **more)


def _finished(
    d: DecisionBuilder, run: StepRun, index: int | None, held: Suspended, by: Mapping[str, Any]
) -> tuple[Finished, list[Record]] | None:
    """Return how a woken pipeline ends, with its records; None if a worker must do it.

    It ends here if its last task was the wait, has no policy and succeeds: then nothing is rendered, stored or retried.
    """
    if d.state.is_withheld or _has_gate_to_open(d):
        return None
    try:
        return _woken(d, run, index, held.pipeline, by) if _is_last(d, run, held.pipeline, by.get("result")) else None
    except _FAULTS:
        return None  # no pipeline made this snapshot; the worker that gets it reports the failure


def _has_gate_to_open(d: DecisionBuilder) -> bool:
    """Return whether a parked gate has yet to see an event; it sees the last one only."""
    return d.gates_due and any(token.parked for token in d.state.tokens.values())


def _is_last(d: DecisionBuilder, run: StepRun, snapshot: Mapping[str, Any], result: Any) -> bool:
    """Return whether a pipeline waits in its last task, and all that it holds is here."""
    if "waiting" not in snapshot or run.of is not None or not _SELDOM.isdisjoint(snapshot):
        return False
    plans = _info(d.plan, run).plans
    if snapshot.get("counter", 0) != len(plans) - 1 or plans[-1].has_policy or plans[-1].asserts is not None:
        return False
    kept = (*snapshot.get("results", {}).values(), snapshot.get("prev", {}))
    return expanded(result) is result and not holds_ref(result) and not any("stored" in one for one in kept)


def _woken(
    d: DecisionBuilder, run: StepRun, index: int | None, snapshot: Mapping[str, Any], by: Mapping[str, Any]
) -> tuple[Finished, list[Record]] | None:
    own: dict[str, Any] = {
        "execution_id": d.state.execution_id,
        "number": first_number(run),
        "seed": work_id(d.state, run),
    }
    if run.loop is not None and index is not None:
        own |= {"index": index, "item_key": run.loop.names.get(index)}
    records: list[Record] = []
    info, tasks = replace(_info(d.plan, run), **own), d.plan.step(run.step).tasks
    action = restore(tasks, snapshot, Scopes(), info, None, records).wake(by, d.at)
    return (action, records) if isinstance(action, Finished) and action.status == "ok" else None


def _info(plan: Plan, run: StepRun) -> RunInfo:
    """Return what the pipelines of all runs of a step share."""
    known = plan.steps[run.step]
    if not known.infos:
        layered = Layered(dict(plan.defaults)).over(plan.playbook.executor.spec)
        known.remember_info(for_step(info_for(plan.playbook, {}), known.step, layered))
    info: RunInfo = known.infos[0]
    return info


def _end(d: DecisionBuilder, run: StepRun, index: int | None, ended: Finished) -> None:
    if index is None:
        end(d, run, Ending("ok", ended.result, writes=ended.writes, scratch=ended.scratch))
        return
    key = run.loop.names.get(index) if run.loop is not None else None
    error = loops.item_ended(d, run, ItemEnd(index, "ok", ended.result, writes=ended.writes, key=key), None)
    if error is not None:
        loops.fail(d, run, error)
    else:
        loops.go_on(d, run)


def _suspended(state: Execution) -> list[tuple[StepRun, int | None, Suspended]]:
    suspensions: list[tuple[StepRun, int | None, Suspended]] = []
    for run in (*state.runs.values(), *state.replays.values()):
        if run.suspended is not None:
            suspensions.append((run, None, run.suspended))
        if run.loop is not None:
            suspensions += [(run, index, held) for index, held in run.loop.suspended.items()]
    return suspensions
