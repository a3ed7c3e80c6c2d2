"""Retries and discards dead letters, beside the rest of their execution.

Nothing waits for a retry: not its loop, not the end of its execution. If it succeeds, its item counts in the running
loop. In an ended loop it is a repair: it amends the results, and the last repair turns a partial execution into a
completed one. If it fails, the letter is pending again. Later steps are not run again. Tested in
tests/unit/engine/handlers/test_redrive.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.engine.decision.builder import DecisionBuilder
from noetl.engine.decision.work import item as work_item
from noetl.engine.decision.work import piece_of, work_id
from noetl.engine.handlers.poison import release
from noetl.engine.routing import loop_results, loops
from noetl.engine.routing.route import failure
from noetl.engine.routing.runs import started
from noetl.engine.routing.suspend import suspend
from noetl.engine.state.dead_letters import about, letter_id
from noetl.engine.state.execution import StepRun
from noetl.engine.state.writes import ctx_keys, plain
from noetl.model.letters import PENDING
from noetl.model.messages import Discard, ItemEnd, LeaseLost, Redrive, Report
from noetl.model.refs import is_manifest


def replay(d: DecisionBuilder, message: Redrive) -> None:
    """Queue the work of pending letters again."""
    for again in message.letters:
        if "message" in again.work:
            release(d, again, message.by)
            continue
        name = letter_id(d.state.execution_id, again.run_id, again.index)
        if d.state.letters.get(name, PENDING) != PENDING or again.step not in d.plan.net.index:
            continue
        run_id = f"{again.run_id}!{d.state.numbers.get('replay', 0) + 1}"
        payload: dict[str, Any] = {"of": again.run_id, "work": again.work, "by": message.by}
        payload |= {"patch": dict(message.patch)} if message.patch else {}
        event = d.emit("dlq.replayed", again.step, payload, step_run_id=run_id, iteration=again.index)
        d.update_letter(event)


def discard(d: DecisionBuilder, message: Discard) -> None:
    """Close pending letters without running their work."""
    for step, run_id, index in message.letters:
        name = letter_id(d.state.execution_id, run_id, index)
        if d.state.letters.get(name, PENDING) == PENDING:
            payload = {"of": run_id, "reason": message.reason, "by": message.by}
            d.update_letter(d.emit("dlq.discarded", step, payload, iteration=index))


def report(d: DecisionBuilder, run: StepRun, message: Report) -> None:
    """Apply a worker's report on a retry."""
    if run.phase == "suspended" or message.epoch < run.epoch:
        d.record_late(message)
        return
    work = work_id(d.state, run, piece_of(run))
    if run.phase == "scheduled" or message.epoch > run.epoch:
        started(d, run, message)
    d.record_report(run, message)
    end = _end_of(message)
    if message.suspension is not None or end is not None:
        d.finish(work, message.epoch)
    if message.suspension is not None:
        suspend(d, run, message.suspension)
    elif end is not None:
        _ended(d, run, end)
    else:
        d.hold(work, message.epoch)
        if message.pipeline is not None:
            d.queue(work_item(d.plan, d.state, run))


def _end_of(message: Report) -> ItemEnd | None:
    if message.items:
        return message.items[0]
    ending = message.ending
    if ending is None:
        return None
    error = None if ending.status == "ok" else ending.error or failure("unknown", "the worker gave no reason")
    return ItemEnd(0, "ok" if error is None else "error", ending.result, error, message.writes, last=ending.last)


def lease_lost(d: DecisionBuilder, run: StepRun, message: LeaseLost, is_last: bool) -> None:
    """Queue a lost retry again, or return its letter without deliveries left."""
    if run.phase == "suspended":
        return
    if not is_last:
        d.queue(work_item(d.plan, d.state, run))
        return
    text = "no worker finished this work in the deliveries that `limits.max_attempts` allows; each lease ran out"
    d.drop(work_id(d.state, run, piece_of(run)))
    give_back(d, run, failure("unknown", text, "LEASE_LOST"), {"attempts": message.attempt})


def give_back(
    d: DecisionBuilder, run: StepRun, error: Mapping[str, Any], last: Mapping[str, Any] | None = None
) -> None:
    """Set the letter of a failed retry back to pending, with the new error."""
    of = run.of or {}
    letter = about(d.state, run, error, last, of.get("item"))
    letter["attempts"] += of.get("attempts", 0)
    letter |= {"first_seen": of.get("first_seen", letter["first_seen"]), "replays": of.get("replays", 0) + 1}
    payload: dict[str, Any] = {"of": of.get("run_id"), "error": error, "letter": letter}
    payload |= {"key": of["key"]} if of.get("key") is not None else {}
    d.update_letter(d.emit("dlq.returned", run.step, payload, run=run, iteration=of.get("index")))


def _ended(d: DecisionBuilder, run: StepRun, end: ItemEnd) -> None:
    of = run.of or {}
    owner = d.state.runs.get(str(of.get("run_id")))
    loop = owner.loop if owner is not None else None
    index = of.get("index")
    error: Mapping[str, Any] | None = end.error
    if error is None and loop is not None and index is not None:
        error = loops.conflict(loop, ItemEnd(index, end.status, writes=end.writes))
    if error is not None:
        give_back(d, run, error, end.last)
        return
    payload: dict[str, Any] = {"of": of.get("run_id"), "replay": True}
    payload |= {"writes": plain(ctx_keys(end.writes))} if end.writes else {}
    if index is None:
        payload["result"] = end.result
        d.update_letter(d.emit("step.repaired", run.step, payload, run=run, status="ok"))
        return
    payload |= _result_payload(d, run, index, end.result)
    event = d.emit("loop.item.repaired", run.step, payload, run=run, iteration=index, status=end.status)
    d.update_letter(event)
    if d.state.phase == "ended" and d.state.outcome == "partial" and not d.state.partial:
        corrected = {"status": "completed", "result": d.state.result}
        d.emit("playbook.corrected", d.state.execution_id, corrected, status="completed")


def _result_payload(d: DecisionBuilder, run: StepRun, index: int, result: Any) -> dict[str, Any]:
    """Return the result of a repaired item, and the part that replaces a stored one."""
    parts = _stored_parts(d, run, index)
    if parts is None or result is None:
        return {} if result is None else {"result": result}
    return {"result": result, **loop_results.replaced(d, run, parts, index, result)}


def _stored_parts(d: DecisionBuilder, run: StepRun, index: int) -> list[Mapping[str, Any]] | None:
    of = str((run.of or {}).get("run_id"))
    owner, ended = d.state.runs.get(of), d.state.ended.get(run.step)
    if owner is not None and owner.loop is not None:
        return list(owner.loop.parts) if index < owner.loop.kept else None
    results = ended.result.get("results") if ended is not None and isinstance(ended.result, Mapping) else None
    if ended is None or ended.run_id != of or not is_manifest(results):
        return None
    return list(results["parts"])
