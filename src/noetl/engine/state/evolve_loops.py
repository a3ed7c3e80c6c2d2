"""Applies the events of loops to a state.

Part of the fold: decides nothing. Tested in tests/unit/engine/routing/test_loops.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.engine.state.execution import Execution, Loop, Piece, StepRun, Suspended
from noetl.engine.state.frames import frames
from noetl.engine.state.writes import ctx_keys, put
from noetl.model.events import Event

Payload = Mapping[str, Any]
_ERRORS_KEPT = 20


def started(state: Execution, event: Event, payload: Payload) -> None:
    """Begin a loop over its evaluated list."""
    items = payload["items"] if isinstance(payload["items"], Mapping) else list(payload["items"])
    state.runs[str(event.step_run_id)].loop = Loop(
        items,
        payload.get("total", len(items)),
        payload["mode"] == "sequential",
        payload["exec"] == "local",
        payload["width"],
        payload["failure"] == "best_effort",
        dict(payload.get("reduce", {})),
        bool(payload.get("cursor")),
        frame=payload.get("frame", {}),
    )


def scheduled(state: Execution, event: Event, payload: Payload) -> None:
    """Issue a piece: a range of items, or one item that resumes after a suspension."""
    run = state.runs[str(event.step_run_id)]
    loop = run.loop
    if loop is None:
        return
    numbers, name = state.numbers, f"chunk:{run.run_id}"
    numbers[name] = numbers.get(name, 0) + 1
    start, count = payload["start"], payload["count"]
    pending = set(range(start, start + count))
    resume = payload.get("resume")
    loop.pieces[payload["chunk"]] = Piece(start, count, payload["width"], pending, event.timestamp, 0, resume)
    if resume is None:
        _take(loop, start, count)
        return
    consume_wake(state, loop.suspended.pop(start, None), payload)


def consume_wake(state: Execution, suspended: Suspended | None, payload: Payload) -> None:
    """Remove the signal, the timer and the child that a wait was for."""
    signal = payload.get("signal")
    if signal is not None and state.signals.get(signal):
        state.signals[signal].pop(0)
        if not state.signals[signal]:
            del state.signals[signal]
    state.timers.pop(payload.get("timer", ""), None)
    if suspended is not None and suspended.child_id is not None:
        state.children.pop(suspended.child_id, None)


def _take(loop: Loop, start: int, count: int) -> None:
    if not loop.back or loop.back[0][0] != start:
        loop.issued = start + count
        return
    _, returned = loop.back.pop(0)
    if count < returned:
        loop.back.insert(0, (start + count, returned - count))


def claim_scheduled(state: Execution, event: Event, payload: Payload) -> None:
    """Issue a claim of rows."""
    run = state.runs[str(event.step_run_id)]
    loop = run.loop
    if loop is None:
        return
    state.numbers[f"chunk:{run.run_id}"] = state.numbers.get(f"chunk:{run.run_id}", 0) + 1
    loop.pieces[payload["chunk"]] = Piece(
        len(loop.items), 0, 0, set(), event.timestamp, claim=True, idle=bool(payload.get("idle"))
    )


def claim_recorded(state: Execution, event: Event, payload: Payload) -> None:
    """Add the new rows of a claim to the items of the loop."""
    loop = state.runs[str(event.step_run_id)].loop
    piece = loop.pieces.get(payload["chunk"]) if loop is not None else None
    if loop is None or piece is None:
        return
    piece.epoch = payload.get("epoch", piece.epoch)
    piece.given += len(payload["rows"]) + len(payload.get("known", ()))
    for row, key in zip(payload["rows"], payload["keys"], strict=True):
        if loop.frame.get("process") == "frame":
            piece.rows.append((row, key))
            if key is not None:
                loop.keys[key] = len(loop.items)
        else:
            _add_item(loop, row, key)


def _add_item(loop: Loop, value: Any, key: str | None) -> None:
    if key is not None:
        loop.keys[key] = len(loop.items)
        loop.names[len(loop.items)] = key
    loop.items.append(value)
    loop.count += 1


def claim_done(state: Execution, event: Event, payload: Payload) -> None:
    """Close a claim, so that its rows may be issued."""
    loop = state.runs[str(event.step_run_id)].loop
    piece = loop.pieces.pop(payload["chunk"], None) if loop is not None else None
    if loop is None or piece is None:
        return
    for rows, key in frames(piece.rows, loop.frame):
        _add_item(loop, rows, key)
    loop.dry = not piece.given
    loop.drained = loop.dry and piece.idle
    loop.stale = loop.stale + 1 if piece.given and len(loop.items) == piece.start else 0


def piece_started(state: Execution, event: Event, payload: Payload) -> None:
    """Record the epoch of the worker that started a piece."""
    loop = state.runs[str(event.step_run_id)].loop
    if loop is not None and payload["chunk"] in loop.pieces:
        loop.pieces[payload["chunk"]].epoch = payload.get("epoch", 0)


def item_ended(state: Execution, event: Event, payload: Payload) -> None:
    """Count an ended item, and keep its result and writes."""
    run = state.runs[event.step_run_id or ""]
    loop, index = run.loop, event.iteration
    if loop is None or index is None:
        return
    if loop.cursor:
        loop.items[index] = None
        loop.names.pop(index, None)
    if event.event_type == "loop.iteration.failed":
        loop.failed += 1
        if len(loop.errors) < _ERRORS_KEPT:
            loop.errors.append({"index": index, "error": payload.get("error")})
    elif event.status == "skipped":
        loop.skipped += 1
    else:
        loop.succeeded += 1
        result = payload.get("result")
        if result is not None:
            loop.results[index] = result
            loop.bytes += _weight(result)
    if "writes" in payload:
        _write(state, run, loop, index, payload["writes"])
    _end_of_piece(loop, str(payload.get("chunk")), index, event.timestamp)


def repaired(state: Execution, run: StepRun, index: int, status: str, payload: Payload) -> None:
    """Count a repaired item of a running loop as succeeded."""
    loop = run.loop
    if loop is None:
        return
    loop.failed -= 1
    loop.errors = [one for one in loop.errors if one["index"] != index]
    if status == "skipped":
        loop.skipped += 1
    else:
        loop.succeeded += 1
    if "parts" in payload:
        at = payload["at"]
        loop.parts = [*loop.parts[:at], *payload["parts"], *loop.parts[at + 1 :]]
    elif payload.get("result") is not None:
        loop.results[index] = payload["result"]
        loop.bytes += _weight(payload["result"])
    if "writes" in payload:
        _write(state, run, loop, index, payload["writes"])


def _write(state: Execution, run: StepRun, loop: Loop, index: int, writes: Mapping[str, Any]) -> None:
    for key, value in ctx_keys(writes).items():
        if loop.sequential and key not in loop.reduce:
            put(state.ctx, key, value)
            if run.seen is not None:
                put(run.seen.ctx, key, value)  # later items see it, also on another delivery
        else:
            _keep(loop, key, index, value)


def collected(state: Execution, event: Event, payload: Payload) -> None:
    """Drop results that were stored; a task's own manifest changes nothing."""
    loop = state.runs[str(event.step_run_id)].loop
    if loop is None or "start" not in payload:
        return
    loop.kept = payload["start"] + payload["count"]
    loop.parts += payload["parts"]
    for index in range(payload["start"], loop.kept):
        if index in loop.results:
            loop.bytes -= _weight(loop.results.pop(index))


def _weight(result: Any) -> int:
    if isinstance(result, str):
        return len(result) + 2
    return len(msgspec.json.encode(result)) if isinstance(result, Mapping | list) else 4


def _keep(loop: Loop, key: str, index: int, value: Any) -> None:
    """Keep a write until the loop ends; without a reducer only the first one."""
    values = loop.writes.setdefault(key, {})
    if key in loop.reduce or not values:
        values[index] = value


def suspend(loop: Loop, chunk: str, index: int, suspended: Suspended) -> None:
    """Suspend one item, which stays in flight; its piece continues or is returned."""
    loop.suspended[index] = suspended
    piece = loop.pieces.get(chunk)
    if piece is None:
        return
    piece.pending.discard(index)
    piece.width -= 1
    if piece.width and piece.pending:
        return
    del loop.pieces[chunk]
    if loop.sequential:
        loop.issued = index + 1
        return
    for left in sorted(piece.pending):
        if loop.back and sum(loop.back[-1]) == left:
            loop.back[-1] = (loop.back[-1][0], loop.back[-1][1] + 1)
        else:
            loop.back.append((left, 1))


def _end_of_piece(loop: Loop, chunk: str, index: int, at: int | None) -> None:
    piece = loop.pieces.get(chunk)
    if piece is None:
        return
    piece.pending.discard(index)
    if piece.pending:
        return
    del loop.pieces[chunk]
    if at is not None:
        loop.busy_ms += max(0, at - piece.at) * piece.width
        loop.timed += piece.count
