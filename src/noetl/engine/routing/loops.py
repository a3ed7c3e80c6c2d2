"""Loops on the server: the list, the ranges issued, the items that end.

Ranges in flight, suspended items included, never exceed `max_in_flight`. Tested in tests/unit/engine/routing/test_loops.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from noetl.engine.decision.builder import DecisionBuilder
from noetl.engine.decision.needs_load import kind_of
from noetl.engine.decision.scope import Scope, number, render
from noetl.engine.routing import loop_results
from noetl.engine.routing.route import Ending, end, failure, is_tried_again
from noetl.engine.state.dead_letters import about, is_letter
from noetl.engine.state.execution import Loop, StepRun
from noetl.engine.state.frames import MOST_ROWS
from noetl.engine.state.writes import EMPTY, ctx_keys, plain, reduced
from noetl.expr import TemplateError, Undefined
from noetl.expr.runtime.iteration import rows_of
from noetl.model.messages import Collect, ItemEnd, Row

LOCAL_ITEMS = 1_000  # per range of a loop that runs on one lease
MOST_ITEMS = 500  # per range of a distributed loop
TARGET_MS = 200  # target duration of a range
INLINE_RESULTS = 1_000  # longer lists are not repeated in the event of the loop's end
DEFAULT_WIDTH = 16


class NotAListError(Exception):
    """The value of `loop.in` is not a list."""


def begin(d: DecisionBuilder, run: StepRun) -> None:
    """Evaluate the list of a loop and issue its first ranges."""
    step = d.plan.step(run.step)
    if step.loop is None:
        return
    scope = d.scope(run.args)
    try:
        items = None if step.loop.items is None else _source(d, run, step.loop.items.data, scope)
    except (TemplateError, NotAListError) as error:
        message = f"`loop.in` of step `{run.step}`: {error}"
        end(
            d,
            run,
            Ending("error", None, failure(kind_of(error) if isinstance(error, TemplateError) else "schema", message)),
        )
        return
    most = (d.plan.setting("limits", step) or {}).get("max_items")
    total = 0 if items is None else items["total"] if isinstance(items, Mapping) else len(items)
    if isinstance(most, int) and total > most:
        message = f"`loop.in` of step `{run.step}` has {total} items; `limits.max_items` allows {most}"
        end(d, run, Ending("error", None, failure("schema", message)))
        return
    sequential = step.loop.mode != "parallel"
    placement = d.plan.policy(step, "exec") or ("local" if sequential else "distributed")
    width = 1 if sequential else _width(d, step.loop.spec.get("max_in_flight"), scope)
    frame = _frame(d, step.loop.spec.get("frame"), scope) if items is None else {}
    if not sequential and frame.get("process") == "row":
        width *= frame["width"]
    reduce = step.loop.spec.get("reduce")
    payload: dict[str, Any] = {
        "items": [] if items is None else items,
        "total": total,
        "iterator": step.loop.iterator,
        "mode": "sequential" if sequential else "parallel",
        "exec": placement,
        "width": width,
        "failure": d.plan.policy(step, "failure", "mode") or "fail_fast",
    }
    payload |= {"cursor": True} if items is None else {}
    payload |= {"frame": frame} if frame else {}
    payload |= {"reduce": ctx_keys(reduce.data)} if reduce is not None else {}
    d.emit("loop.started", run.step, payload, run=run)
    limit = number(step.loop.total_timeout_ms.data, scope, d.calls) if step.loop.total_timeout_ms else None
    if limit is not None:
        d.set_timer(f"loop:{run.run_id}", "loop", d.at + round(limit), run)
    go_on(d, run)


def _source(d: DecisionBuilder, run: StepRun, template: Any, scope: Scope) -> list[Any] | Mapping[str, Any]:
    lazy_items = loop_results.source(d, template, run.args) or loop_results.numbers(d, template, scope)
    if lazy_items is not None:
        return lazy_items
    strict = d.plan.setting("strict_templates", d.plan.step(run.step), True) is not False
    return loop_results.shelved(d, run, plain(listed(render(template, scope, d.calls), strict)))


def _width(d: DecisionBuilder, setting: Any, scope: Scope) -> int:
    width = number(setting.data, scope, d.calls) if setting is not None else None
    if width is None:
        capacity = d.plan.defaults.get("pool_capacity")
        return capacity if isinstance(capacity, int) and capacity > 0 else DEFAULT_WIDTH
    return max(1, int(width))


def _frame(d: DecisionBuilder, setting: Any, scope: Scope) -> dict[str, Any]:
    """Return how the rows of a cursor are claimed and run; empty without frames."""
    given = setting.data if setting is not None else None
    if not isinstance(given, Mapping):
        return {}

    def whole(name: str, usual: int) -> int:
        found = number(given[name], scope, d.calls) if given.get(name) is not None else None
        return usual if found is None else max(1, int(found))

    frame: dict[str, Any] = {"process": given.get("process") or "row", "rows": whole("max_rows", MOST_ROWS)}
    frame["width"] = whole("row_concurrency", 1)
    seconds = number(given["max_seconds"], scope, d.calls) if given.get("max_seconds") is not None else None
    frame |= {} if seconds is None else {"seconds": seconds}
    return frame | ({"bytes": whole("max_bytes", 1)} if given.get("max_bytes") is not None else {})


def listed(value: Any, strict: bool = True) -> list[Any]:
    """Convert the value of `loop.in` to a list; JSON text and rows are accepted."""
    if isinstance(value, Undefined):
        value = value.fail() if strict else None
    if value is None:
        return []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise NotAListError(f"a list is needed, and this is the text {value[:60]!r}") from None
        if value is None:
            return []
    if isinstance(value, range | tuple):
        return list(value)
    if isinstance(value, Mapping):
        rows = rows_of(value)
        value = value if rows is None else rows
    if not isinstance(value, list):
        raise NotAListError(f"a list is needed, and this is {_describe(value)}")
    return value


def _describe(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a map (write `| items` or `| list` after it)"
    return "a flag" if isinstance(value, bool) else "a number" if isinstance(value, int | float) else "a text"


def go_on(d: DecisionBuilder, run: StepRun) -> None:
    """Issue ranges up to the loop's width; end the loop when nothing is left."""
    loop = run.loop
    if loop is None:
        return
    if loop.ended == loop.total and (loop.drained or not loop.cursor):
        complete(d, run)
        return
    loop_results.gather(d, run)
    while not d.state.paused and (loop.back or loop.issued < loop.ready):
        start, left = loop.back[0] if loop.back else (loop.issued, loop.ready - loop.issued)
        count, width = _next_range(loop, left)
        if not count:
            return
        issue(d, run, start, count, width)
    if loop.cursor and not d.state.paused:
        _claim_next(d, run, loop)


def _claim_next(d: DecisionBuilder, run: StepRun, loop: Loop) -> None:
    """Claim more rows; only a claim with no row in flight can end the loop."""
    busy = bool(loop.pieces or loop.suspended)
    waits = bool(loop.back) or loop.issued < loop.total or any(piece.claim for piece in loop.pieces.values())
    if waits or loop.room <= 0 or (busy and (loop.sequential or loop.dry)):
        return
    payload: dict[str, Any] = {"chunk": next_chunk(d, run)}
    d.emit("loop.claim.scheduled", run.step, payload | ({} if busy else {"idle": True}), run=run)


def record_rows(d: DecisionBuilder, run: StepRun, loop: Loop, chunk: str, epoch: int, rows: Iterable[Row]) -> None:
    """Record the rows of a claim before it takes effect, deduplicated by key."""
    fresh: dict[str | int, Row] = {}
    known: list[str] = []
    for row in rows:
        if row.key is not None and (row.key in loop.keys or row.key in fresh):
            known.append(row.key)
        else:
            fresh[len(fresh) if row.key is None else row.key] = row
    payload: dict[str, Any] = {
        "chunk": chunk,
        "epoch": epoch,
        "rows": plain([row.value for row in fresh.values()]),
        "keys": [row.key for row in fresh.values()],
    }
    d.emit("loop.claim.recorded", run.step, payload | ({"known": known} if known else {}), run=run)


def claim_ended(d: DecisionBuilder, run: StepRun, loop: Loop, chunk: str) -> None:
    """Close a claim that took effect or returned nothing, and continue the loop."""
    d.emit("loop.claim.done", run.step, {"chunk": chunk}, run=run)
    if loop.stale > 1:
        message = f"the `claim` of step `{run.step}` gives the same rows again: it must mark what it claims"
        fail(d, run, failure("schema", message, "CLAIM_MARKS_NOTHING"))
    else:
        go_on(d, run)


def _next_range(loop: Loop, left: int) -> tuple[int, int]:
    room = loop.room
    if room <= 0:
        return 0, 0
    if loop.frame.get("process") == "row" and not loop.sequential:
        count = min(left, loop.frame["rows"])
        return count, min(room, count, loop.frame["width"])
    if loop.local:
        return (0, 0) if loop.pieces else (min(left, LOCAL_ITEMS), room)
    if loop.sequential or not loop.timed:
        return 1, 1
    fair = -(-left // loop.width)  # no worker should idle while another has a long range
    fitting = MOST_ITEMS if not loop.busy_ms else max(1, TARGET_MS * loop.timed // loop.busy_ms)
    return max(1, min(left, fair, fitting, MOST_ITEMS)), 1


def issue(d: DecisionBuilder, run: StepRun, start: int, count: int, width: int, **more: Any) -> None:
    """Put a range of items in the queue."""
    payload = {"chunk": next_chunk(d, run), "start": start, "count": count, "width": width, **more}
    d.emit("loop.iteration.scheduled", run.step, payload, run=run)


def next_chunk(d: DecisionBuilder, run: StepRun) -> str:
    """Return the id of the loop's next piece."""
    return f"c{d.state.numbers.get(f'chunk:{run.run_id}', 0) + 1}"


def item_ended(d: DecisionBuilder, run: StepRun, item: ItemEnd, chunk: str | None) -> Mapping[str, Any] | None:
    """Record the end of an item; return the error that ends the whole loop, if any."""
    loop = run.loop
    if loop is None:
        return None
    clash = conflict(loop, item)
    if clash is not None:
        return clash
    payload: dict[str, Any] = {} if chunk is None else {"chunk": chunk}
    payload |= {"writes": plain(ctx_keys(item.writes))} if item.writes else {}
    payload |= {"key": item.key} if item.key is not None else {}
    if item.status in ("ok", "skipped"):
        payload |= {"result": item.result} if item.result is not None else {}
        d.emit("loop.iteration.done", run.step, payload, run=run, iteration=item.index, status=item.status)
    else:
        payload["error"] = error = item.error or failure("unknown", "the item failed")
        if is_letter(error, d.plan.defaults) and not is_tried_again(run):
            value = None if "payload" in (item.last or {}) else loop_results.item(loop, item.index, None)
            payload["letter"] = about(d.state, run, error, item.last, value)
            payload |= {"key": loop.names[item.index]} if item.index in loop.names else {}
        d.update_letter(
            d.emit("loop.iteration.failed", run.step, payload, run=run, iteration=item.index, status="error")
        )
    if item.writes and loop.sequential:
        d.retry_gates()
    if item.status in ("ok", "skipped") or loop.best_effort:
        return None
    error = dict(item.error or failure("unknown", "the item failed"))
    details = {**(error.get("details") or {}), "index": item.index, "stats": loop.stats()}
    return {**error, "message": f"item {item.index} of the loop failed: {error.get('message', '')}", "details": details}


def conflict(loop: Loop, item: ItemEnd) -> Mapping[str, Any] | None:
    """Return the error of two items that wrote different values to one key."""
    if loop.sequential:
        return None
    for key, value in ctx_keys(item.writes).items():
        if key in loop.reduce:
            continue
        for index, other in loop.writes.get(key, {}).items():
            if other != value:
                message = (
                    f"items {index} and {item.index} wrote different values to `ctx.{key}`; "
                    f"declare how they become one: `loop.spec.reduce: {{ctx.{key}: last}}`"
                )
                return failure("schema", message, "CTX_CONFLICT", key=key, items=[index, item.index])
    return None


def collect(d: DecisionBuilder, message: Collect) -> None:
    """Store results of a loop, and end it after the last ones."""
    run = d.state.runs.get(message.run_id)
    if run is None or run.loop is None:
        return
    has_place = loop_results.put_away(d, run, run.loop, message.upto)
    if message.last:
        complete(d, run, stays=not has_place)


def complete(d: DecisionBuilder, run: StepRun, *, stays: bool = False) -> None:
    """End a loop; long results are stored first, or stay inline if `stays`."""
    loop = run.loop
    if loop is None:
        return
    writes, misfit = _reduced_writes(loop)
    if misfit is not None:
        fail(d, run, failure("schema", misfit))
        return
    if not stays and not loop_results.gathered(d, run):
        return  # it ends when its results are stored
    result = {"results": loop_results.results(d.state, run, loop), "stats": loop.stats()}
    inline = bool(loop.parts) or loop.count <= INLINE_RESULTS
    end(d, run, Ending("ok", result, writes=writes, is_loop=True, inline=inline))


def _reduced_writes(loop: Loop) -> tuple[dict[str, Any], str | None]:
    writes: dict[str, Any] = {}
    misfit = None
    for key, how in loop.reduce.items():
        try:
            if loop.writes.get(key):
                writes[key] = reduced(how, loop.writes[key])
            elif how in EMPTY:
                writes[key] = EMPTY[how]
        except TypeError as error:
            misfit = f"`loop.spec.reduce` cannot make one value of `ctx.{key}` by `{how}`: {error}"
    for key, values in loop.writes.items():
        if key not in loop.reduce:
            writes[key] = next(iter(values.values()))
    return writes, misfit


def fail(d: DecisionBuilder, run: StepRun, error: Mapping[str, Any]) -> None:
    """End a loop early: drop what is in flight, keep what was written."""
    d.drop_work(run)
    writes = _reduced_writes(run.loop)[0] if run.loop is not None else {}
    if error.get("code") == "CTX_CONFLICT":
        writes.pop(error["details"]["key"], None)
    end(d, run, Ending("error", None, error, writes, is_loop=True))
