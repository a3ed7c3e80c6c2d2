"""Decides plain messages in one go: a start, and a report that a step went well, where nothing about them is special.

What is decided is exactly what the general way decides (`start`, `reports`, `route`, `flow`, `saga`, event by event through
`evolve`), where every rule is. This is what the rules come to where no gate, fork, failure, timer, child or template has a
say. Anything else is left to the general way, with nothing changed. Tested in tests/unit/engine/test_straight.py, which
plays both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.engine.away import NOTHING
from noetl.engine.decision import Decision, add_records, row
from noetl.engine.evolve import finished, requested
from noetl.engine.evolve_runs import went_well
from noetl.engine.plan import Plan
from noetl.engine.route import took
from noetl.engine.runs import began
from noetl.engine.saga import counts
from noetl.engine.slice import sees
from noetl.engine.start import request_of
from noetl.engine.state import Execution, StepRun, see
from noetl.engine.step_plan import StepPlan
from noetl.engine.work import new_item, work_id
from noetl.engine.writes import merge
from noetl.model.events import Event
from noetl.model.ids import message_digest
from noetl.model.messages import AnyMessage, Ending, Report, Start
from noetl.model.work import WorkItem


def straight(plan: Plan, state: Execution, message: AnyMessage, at: int) -> Decision | None:
    """Decide a plain message; None for any other, and then nothing is changed."""
    if not plan.is_plain or state.letters:
        return None
    if isinstance(message, Report):
        return None if message.ending is None else _report(plan, state, message, message.ending, at)
    return _start(plan, state, message, at) if isinstance(message, Start) else None


def _start(plan: Plan, state: Execution, message: Start, at: int) -> Decision | None:
    """Begin an execution whose entry step is work at once."""
    entrance = plan.entrance
    if entrance is None or state.phase != "pending" or message.priority:
        return None
    before, execution_id = state.seq, state.execution_id
    stem = f"{message_digest(message.message_id)}."
    request = request_of(message)
    workload = merge(entrance.workload, message.payload)
    told = {"workload": workload}
    asked = Event(f"{stem}0", execution_id, before + 1, "playbook.execution.requested", at, "server", "execution",
                  execution_id, payload=request)  # fmt: skip
    events = [
        asked,
        Event(f"{stem}1", execution_id, before + 2, "playbook.request.evaluated", at, "server", "execution",
              execution_id, status="accepted", payload=told),
        Event(f"{stem}2", execution_id, before + 3, "playbook.started", at, "server", "execution", execution_id,
              payload=NOTHING),
        Event(f"{stem}3", execution_id, before + 4, "workflow.started", at, "server", "workflow", "workflow",
              payload=entrance.started),
    ]  # fmt: skip
    requested(state, asked, request)
    state.workload, state.phase = dict(workload), "running"
    work = _enter(plan, state, entrance.known, entrance.token, None, events, stem, at)
    return _made(state, before, events, (work,), (), at)


def _report(plan: Plan, state: Execution, message: Report, ending: Ending, at: int) -> Decision | None:
    """End a run that went well; its only arc leads into the work of the next step, or nothing is left to do."""
    run = state.runs.get(message.run_id)
    if run is None or ending.status != "ok" or not _is_plain(state, run, message):
        return None
    onward = plan.steps[run.step].onward
    if onward is None:
        return None
    target = None if onward.token is None else plan.steps[onward.token["step"]]
    if not (_is_last(plan, state) if target is None else target.enters):
        return None
    before, execution_id, step, run_id = state.seq, state.execution_id, run.step, run.run_id
    stem = f"{message_digest(message.message_id)}."
    told = {"worker": message.worker, "epoch": message.epoch}
    events = [
        Event(f"{stem}0", execution_id, before + 1, "step.started", began(run, message, at), "server", "step", step,
              None, run_id, payload=told)
    ]  # fmt: skip
    if add_records(events, message.records, stem, execution_id, before + 1, run_id):
        return None  # one of them changes more than the log
    count, result = len(events), ending.result
    done = before + count + 1
    events += (
        Event(f"{stem}{count}", execution_id, done, "step.done", at, "server", "step", step, None, run_id, None, None,
              None, "ok", took(state, run, at), {"result": result}),
        Event(f"{stem}{count + 1}", execution_id, done + 1, "next.evaluated", at, "server", "step", step, None, run_id,
              payload=onward.evaluated),
    )  # fmt: skip
    went_well(state, run, result, done)
    work: tuple[WorkItem, ...] = ()
    if target is None or onward.token is None:
        _finish(state, events, stem, at)
    else:
        work = (_enter(plan, state, target, onward.token, run_id, events, stem, at),)
    return _made(state, before, events, work, ((work_id(state, run), message.epoch),), at)


def _is_plain(state: Execution, run: StepRun, message: Report) -> bool:
    """Tell whether the last report of a run is its first one too, alone and with nothing to wait for."""
    return (
        run.phase == "scheduled"
        and not run.started_at
        and run.loop is None
        and message.epoch >= run.epoch
        and message.suspension is None
        and state.phase == "running"
        and not (message.writes or run.lineage or state.tokens or state.timers or state.children)
        and not (state.paused or state.priority)
    )


def _is_last(plan: Plan, state: Execution) -> bool:
    """Tell whether the end of the only run ends the execution well, with nobody who waits for it."""
    return len(state.runs) == 1 and state.outcome is None and state.parent is None and plan.final is None


def _enter(
    plan: Plan,
    state: Execution,
    known: StepPlan,
    token: Mapping[str, Any],
    sender: str | None,
    events: list[Event],
    stem: str,
    at: int,
) -> WorkItem:
    """Send a lone token to a step that lets it in: it becomes a run, whose work is given."""
    execution_id, numbers, name, counter = state.execution_id, state.numbers, known.step.name, known.counter
    numbers["token"] = sent = numbers.get("token", 0) + 1
    numbers[counter] = number = numbers.get(counter, 0) + 1
    token_id, run_id, count = f"t{sent}", f"{name}#{number}", len(events)
    seq = state.seq + count + 1
    payload: dict[str, Any] = {"number": number, "args": {}, "lineage": {}, "tokens": [token_id]}
    run = state.runs[run_id] = StepRun(run_id, name, number, {}, {}, seq + 1, at)
    if known.sees:
        payload["sees"] = seen = sees(known, state)
        run.seen = see(state, seen)
    events += (
        Event(f"{stem}{count}", execution_id, seq, "token.created", at, "server", "token", token_id, None, sender,
              payload=token),
        Event(f"{stem}{count + 1}", execution_id, seq + 1, "step.scheduled", at, "server", "step", name, None, run_id,
              payload=payload),
    )  # fmt: skip
    return new_item(plan, known, state, run)


def _finish(state: Execution, events: list[Event], stem: str, at: int) -> None:
    """End an execution in which all went well."""
    execution_id, count = state.execution_id, len(events)
    seq = state.seq + count + 1
    payload = {"status": "completed", "result": state.result, "error": state.error}
    took = float(max(0, at - state.started_at))
    last = Event(f"{stem}{count + 1}", execution_id, seq + 1, "playbook.finished", at, "server", "execution",
                 execution_id, status="completed", duration_ms=took, payload=payload)  # fmt: skip
    events += (
        Event(f"{stem}{count}", execution_id, seq, "workflow.finished", at, "server", "workflow", "workflow",
              payload={"counts": counts(state)}),
        last,
        Event(f"{stem}{count + 2}", execution_id, seq + 2, "playbook.processed", at, "server", "execution",
              execution_id, payload=NOTHING),
    )  # fmt: skip
    finished(state, last, payload)


def _made(
    state: Execution,
    before: int,
    events: list[Event],
    work: tuple[WorkItem, ...],
    ended: tuple[tuple[str, int], ...],
    at: int,
) -> Decision:
    state.seq, state.at = before + len(events), at
    status = "running" if work else "completed"
    return Decision(state.execution_id, before, tuple(events), work, ended, projection=row(state, status, False))
