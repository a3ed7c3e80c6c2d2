"""Reports of workers: records, items, suspensions, endings; and lost leases.

A late report is only recorded; the store fences by epoch. Tested in tests/unit/engine/handlers/test_decide.py and test_loops.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.engine.decision.builder import DecisionBuilder
from noetl.engine.decision.work import item as work_item
from noetl.engine.decision.work import work_id
from noetl.engine.handlers import redrive
from noetl.engine.routing import loops
from noetl.engine.routing.route import Ending, end, failure
from noetl.engine.routing.runs import started
from noetl.engine.routing.suspend import suspend
from noetl.engine.state.execution import Loop, Piece, StepRun
from noetl.engine.tasks.retry import chance, delivery_delay_ms
from noetl.model import messages
from noetl.model.messages import ItemEnd, LeaseLost, Report


def report(d: DecisionBuilder, message: Report) -> None:
    """Apply a worker's report."""
    state = d.state
    run = state.runs.get(message.run_id)
    if run is None and message.run_id in state.replays:
        redrive.report(d, state.replays[message.run_id], message)
    elif run is None or run.phase in ("routing", "suspended") or state.phase == "ended":
        d.record_late(message)
    elif run.loop is not None:
        _report_items(d, run, message)
    elif message.epoch < run.epoch:
        d.record_late(message)
    else:
        _report_run(d, run, message)


def _report_run(d: DecisionBuilder, run: StepRun, message: Report) -> None:
    work = work_id(d.state, run)
    if run.phase == "scheduled" or message.epoch > run.epoch:
        started(d, run, message)
    d.record_report(run, message)
    if message.suspension is not None:
        d.finish(work, message.epoch)
        suspend(d, run, message.suspension)
    elif message.ending is not None:
        d.finish(work, message.epoch)
        end(d, run, _ending(message.ending, message.writes))
    else:
        d.hold(work, message.epoch)
        if message.pipeline is not None:
            d.queue(work_item(d.plan, d.state, run))  # the next worker continues from here


def _ending(reported: messages.Ending, writes: Mapping[str, Any]) -> Ending:
    if reported.status == "ok":
        return Ending("ok", reported.result, writes=writes, scratch=reported.scratch)
    kind = "cancelled" if reported.status == "cancelled" else "unknown"
    error = reported.error or failure(kind, "the worker gave no reason")
    return Ending("error", reported.result, error, writes, scratch=reported.scratch, last=reported.last or {})


def _report_items(d: DecisionBuilder, run: StepRun, message: Report) -> None:
    loop = run.loop
    piece = loop.pieces.get(message.chunk or "") if loop is not None else None
    if loop is None or piece is None or message.chunk is None or message.epoch < piece.epoch:
        d.record_late(message)
        return
    if piece.claim:
        _report_claim(d, run, loop, message.chunk, message)
        return
    work = work_id(d.state, run, message.chunk)
    _begin_piece(d, run, piece, message)
    d.record_report(run, message)
    for item in message.items:
        if item.index in piece.pending:
            error = loops.item_ended(d, run, item, message.chunk)
            if error is not None:
                d.finish(work, message.epoch)
                loops.fail(d, run, error)
                return
    if message.suspension is not None and message.suspension.index in piece.pending:
        suspend(d, run, message.suspension, message.chunk)
        if run.loop is None:  # an early signal woke the item, and its end was that of the loop
            d.finish(work, message.epoch)
            return
    if message.ending is not None and piece.pending and _give_up(d, run, piece, message.chunk, _error_of(message)):
        d.finish(work, message.epoch)
        return
    if message.chunk in loop.pieces:
        d.hold(work, message.epoch)
        d.queue(work_item(d.plan, d.state, run, message.chunk))  # without the items that have ended
    else:
        d.finish(work, message.epoch)
    loops.go_on(d, run)


def _report_claim(d: DecisionBuilder, run: StepRun, loop: Loop, chunk: str, message: Report) -> None:
    """Record the rows of a claim while its transaction is open, or close the claim."""
    work = work_id(d.state, run, chunk)
    if run.phase == "scheduled":
        started(d, run, message)
    d.record_report(run, message)
    if message.rows:
        loops.record_rows(d, run, loop, chunk, message.epoch, message.rows)
    if message.ending is None:
        d.hold(work, message.epoch)
        return
    d.finish(work, message.epoch)
    if message.ending.status == "ok":
        loops.claim_ended(d, run, loop, chunk)
    else:
        loops.fail(d, run, _error_of(message))


def _begin_piece(d: DecisionBuilder, run: StepRun, piece: Piece, message: Report) -> None:
    lease = {"worker": message.worker, "epoch": message.epoch}
    if run.phase == "scheduled":
        started(d, run, message)
    if piece.epoch != message.epoch:
        items = {"chunk": message.chunk, "start": piece.start, "count": piece.count}
        d.emit("loop.iteration.started", run.step, lease | items, run=run)


def _error_of(message: Report) -> Mapping[str, Any]:
    if message.ending is not None and message.ending.error is not None:
        return message.ending.error
    return failure("unknown", "the worker ended without telling what became of this item")


def _give_up(
    d: DecisionBuilder,
    run: StepRun,
    piece: Piece,
    chunk: str,
    error: Mapping[str, Any],
    last: Mapping[str, Any] | None = None,
) -> bool:
    """Fail the pending items of a range; return whether that ended the loop."""
    for index in sorted(piece.pending):
        fatal = loops.item_ended(d, run, ItemEnd(index, "error", error=error, last=last), chunk)
        if fatal is not None:
            loops.fail(d, run, fatal)
            return True
    return False


def lease_lost(d: DecisionBuilder, message: LeaseLost) -> None:
    """Queue lost work again, or fail it when no delivery is left."""
    run = d.state.runs.get(message.run_id)
    if run is None and message.run_id in d.state.replays:
        retried = d.state.replays[message.run_id]
        redrive.lease_lost(d, retried, message, message.exhausted or _is_last(d, retried, message.attempt))
        return
    if run is None or run.phase in ("routing", "suspended"):
        return
    piece = run.loop.pieces.get(message.chunk or "") if run.loop is not None else None
    if message.chunk is not None and piece is None:
        return
    if not message.exhausted and not _is_last(d, run, message.attempt):
        d.queue(work_item(d.plan, d.state, run, message.chunk, _available_at(d, run, message)))
        return
    text = "no worker finished this work in the deliveries that `limits.max_attempts` allows; each lease ran out"
    error = failure("unknown", text, "LEASE_LOST")
    d.drop(work_id(d.state, run, message.chunk))
    if piece is None or message.chunk is None:
        d.drop_work(run)
        end(d, run, Ending("error", None, error, last={"attempts": message.attempt}))
    elif piece.claim:
        loops.fail(d, run, error)
    elif not _give_up(d, run, piece, message.chunk, error, {"attempts": message.attempt}):
        loops.go_on(d, run)


def _available_at(d: DecisionBuilder, run: StepRun, message: LeaseLost) -> int:
    """Return when lost work is available again; `retries.dispatch` may delay it."""
    retries = d.plan.setting("retries", d.plan.step(run.step))
    drawn = chance(d.state.execution_id, run.run_id, message.chunk, message.attempt)
    delay = delivery_delay_ms(retries, message.attempt, drawn)
    return d.at + delay if delay else 0


def _is_last(d: DecisionBuilder, run: StepRun, attempt: int) -> bool:
    step = d.plan.step(run.step)
    limits, retries = d.plan.setting("limits", step) or {}, d.plan.setting("retries", step) or {}
    bounds = (limits.get("max_attempts"), (retries.get("dispatch") or {}).get("max_attempts"))
    return any(isinstance(bound, int) and attempt >= bound for bound in bounds)
