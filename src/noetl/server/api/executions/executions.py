"""Read executions, and delete. Tested in tests/server/api/test_executions.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import convert
from msgspec.structs import replace
from starlette.responses import Response

from noetl.engine.decision.builder import projection, status_of
from noetl.engine.queries.explain import Standing, choices, standings
from noetl.engine.queries.history.past import Past
from noetl.engine.queries.view import changed, no_event, step_counts
from noetl.engine.routing.slots import held_by, renewed
from noetl.engine.state.execution import Execution as ExecutionState
from noetl.model.outcome import fix_of
from noetl.model.refs import expanded
from noetl.model.work import Line
from noetl.ports import Selection
from noetl.ports.replay import views
from noetl.server.feeds.reader import known_id
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.sse import stream_all, stream_execution
from noetl.server.problems import Refusal
from noetl.server.workers.presence import groups
from noetl.trace_context import trace_of
from noetl.wire.answers import (
    ChoiceRow,
    Execution,
    ExecutionRow,
    Executions,
    Explained,
    FailureRow,
    LineRow,
    StandingRow,
    State,
    Told,
    WorkAhead,
)
from noetl.wire.requests import TRIAL, ExecutionsQuery, ExplainQuery, FeedQuery, FollowQuery, StateQuery

_NO_LIMIT = 2**31
_SEARCHED = 10_000  # executions that one search looks at
_ENVELOPE = ("seq", "event", "status", "checksum")
noun = Noun("executions", "Running and ended executions.")


@noun.route("GET", "/api/executions", "viewer", problems=(400, 404), of="path")
async def listed(call: Call, query: ExecutionsQuery) -> Executions:
    """List executions, the newest first.

    A search looks at 10,000 executions at once; with `scanned_to` as `cursor`, the next request searches further back.
    """
    before = known_id(query.cursor) if query.cursor is not None else None
    if before is not None and call.reach is not None and not await _is_seen(call, before):
        return Executions(executions=[], next=None)
    is_prefix = query.path is not None and query.path.endswith("*")
    wanted = Selection(
        status=query.status,
        path=None if is_prefix else query.path,
        prefix=str(query.path)[:-1] if is_prefix else None,
        ids=tuple(map(known_id, query.ids)) or None,
        needs_signal=query.needs_signal,
        text=query.search,
        tag=query.tag,
        without=None if query.tag == TRIAL or query.parent else TRIAL,
        parent=query.parent,
        since=query.since,
        until=query.until,
        before=before,
        limit=query.limit,
        within=call.reach,
    )
    store, oldest = call.services.store, None
    if query.search is not None:  # else it would look at every execution for a text that none has
        looked = await store.timings(replace(wanted, text=None, limit=_SEARCHED))
        oldest = looked[-1] if len(looked) == _SEARCHED else None
    floor = None if oldest is None else oldest.execution_id
    rows = [row_of(row) for row in await store.executions(replace(wanted, back_to=floor))]
    if len(rows) == query.limit:
        return Executions(executions=rows, next=rows[-1].execution_id)
    return Executions(executions=rows, scanned_to=floor, scanned_at=None if oldest is None else oldest.started_at)


async def _is_seen(call: Call, execution_id: str) -> bool:
    """Return whether an execution exists for the caller."""
    row = await call.services.store.execution(execution_id)
    return row is not None and call.sees(str(row.get("path", "")))


def row_of(row: Mapping[str, Any]) -> ExecutionRow:
    """Return the row of an execution in lists."""
    return ExecutionRow(**_row(row))


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: row[name] for name in ExecutionRow.__struct_fields__ if name in row}
    return {**kept, "tags": list(row.get("tags") or ())}


@noun.route("GET", "/api/executions/stream", "viewer", gives="text/event-stream", problems=(400, 503), of="path")
async def stream(call: Call, query: FeedQuery) -> Response:
    """Follow all executions as server-sent events; `Last-Event-ID` resumes a stream."""
    return await stream_all(call, query)


@noun.route("GET", "/api/executions/{execution_id}", "viewer", problems=(404,), of="execution")
async def detail(call: Call, execution_id: str) -> Execution:
    """Return an execution in detail."""
    state = await call.services.reader.state(execution_id)
    ended = state.phase == "ended"
    row = {**projection(state), "execution_id": execution_id, "last_seq": state.seq}  # consistent with the rest
    return Execution(
        **{
            **_row(row),
            "error": state.error,
            "result": expanded(state.result) if ended else None,
            "ctx": state.ctx,
            "workload": state.workload,
            "steps": step_counts(state),
            "failures": state.failures,
            "warnings": state.warnings,
            "children": list(state.children),
            "compensated": state.compensated,
            "paused": state.paused,
            "duration_ms": (state.ended_at if ended else call.services.clock.now()) - state.started_at,
            **_trace(call, state),
        }
    )


def _trace(call: Call, state: ExecutionState) -> dict[str, str | None]:
    """Return the trace of an execution, with a link if it is sent."""
    tracing = call.services.tracing
    settings = tracing.of_executions if tracing.is_on else None
    found = trace_of(state.execution_id, state.trace, state.workload, settings)
    if found is None:
        return {}
    is_sent = tracing.is_on and (found.sampled or (tracing.on_error and state.status == "failed"))
    return {"trace_id": found.trace_id, "trace_url": (tracing.link(found.trace_id) if is_sent else "") or None}


@noun.route("GET", "/api/executions/{execution_id}/state", "viewer", problems=(400, 404), of="execution")
async def state_at(call: Call, execution_id: str, query: StateQuery) -> State:
    """Return the state after any event, or the changes between two events."""
    await call.services.reader.row(execution_id)
    after, before = await views(call.services.store, execution_id, query.seq, query.diff)
    changes = None if before is None else list(changed(before, after))
    rest = {} if changes is not None else {name: value for name, value in after.items() if name not in _ENVELOPE}
    return State(**{name: after[name] for name in _ENVELOPE}, state=rest, changes=changes)


@noun.route("GET", "/api/executions/{execution_id}/line", "viewer", problems=(404,), of="execution")
async def line(call: Call, execution_id: str) -> LineRow:
    """Show where an execution and its queued work stand in the queue."""
    row = await call.services.reader.row(execution_id)
    state = None if row.get("slot") is None else await call.services.reader.state(execution_id)
    found = await _line(call, execution_id, state)
    work = [WorkAhead(name, ahead, list(found.limits.get(name, ()))) for name, ahead in found.work.items()]
    place = (found.group, found.position, list(found.running))
    return LineRow(work, *place, found.held_by, found.turn_at, dict(found.full))


async def _line(call: Call, execution_id: str, state: ExecutionState | None) -> Line:
    slot = None
    if state is not None and state.slot is not None:
        slot = renewed(state.slot, await call.services.control.plan(state.playbook), state)
    store, most = call.services.store, call.services.control.work_limits
    found = await store.line(execution_id)
    if found.limits:
        counts = {row["limit"]: row["leased"] for row in await call.services.team.work_limits()}
        found = replace(found, full={name: most[name] for name in counts if counts[name] >= most.get(name, _NO_LIMIT)})
    if slot is not None and found.position:
        above = len(await store.holders(slot["above"]["group"])) if "above" in slot else 0
        turn = await store.turn_at(slot["rate"]["group"]) if "rate" in slot else 0
        by, at = held_by(slot, len(found.running), above, turn, call.services.clock.now())
        found = replace(found, held_by=by, turn_at=at)
    return found if call.reach is None else replace(found, running=())  # they may be of another namespace


@noun.route("GET", "/api/executions/{execution_id}/explain", "viewer", problems=(400, 404), of="execution")
async def explain(call: Call, execution_id: str, query: ExplainQuery) -> Explained:
    """Explain a state: what is active, and what it waits for.

    Of a past state, neither workers nor places in the queue are known.
    """
    services = call.services
    state = await services.reader.state(execution_id)
    plan = await services.control.plan(state.playbook)
    now, pools, place = services.clock.now(), None, None
    if query.seq is not None and query.seq > state.seq:
        raise no_event(query.seq, state.seq)
    if query.seq is not None and query.seq < state.seq:
        state = (await services.checkpoints.replay(execution_id, query.seq)).state
        known, now = await services.collected.once(execution_id, Past(), to=query.seq), state.at
        return _explained(call, state, standings(plan, state, known, None, now), known)
    if state.phase != "ended":
        place = await _line(call, execution_id, state)
        if not state.pool.startswith("local:"):  # `noetl run` has its own worker
            pools = groups(await services.team.workers(), now)
    known = await services.collected.get(execution_id, "past", Past)
    return _explained(call, state, standings(plan, state, known, pools, now, place), known)


def _explained(call: Call, state: ExecutionState, standing: Iterable[Standing], known: Past) -> Explained:
    decisions = call.services.mask.events(known.decisions)
    return Explained(
        execution_id=state.execution_id,
        status=status_of(state),
        error=state.error,
        standing=[convert(one, StandingRow, from_attributes=True) for one in standing if state.phase != "ended"],
        choices=[convert(one, ChoiceRow, from_attributes=True) for one in choices(decisions)],
        seq=state.seq,
        failure=_failure(state),
    )


def _failure(state: ExecutionState) -> FailureRow | None:
    first = state.failures[0] if state.failures else {"step": "", "error": state.error}
    error = first.get("error")
    if not isinstance(error, Mapping):
        return None
    return FailureRow(str(first["step"]), error, fix_of(error, state.execution_id))


@noun.route(
    "GET",
    "/api/executions/{execution_id}/events/stream",
    "viewer",
    gives="text/event-stream",
    problems=(404,),
    of="execution",
)
async def follow(call: Call, execution_id: str, query: FollowQuery) -> Response:
    """Follow one execution as server-sent events; `Last-Event-ID` resumes."""
    return await stream_execution(call, execution_id, query)


@noun.route(
    "DELETE", "/api/executions/{execution_id}", "admin", act="execution.delete", problems=(404, 409), of="execution"
)
async def remove(call: Call, execution_id: str) -> Told:
    """Delete an ended execution and its log."""
    row = await call.services.reader.row(execution_id)
    if not await call.services.store.remove(execution_id, call.act(execution_id)):
        raise Refusal(409, "conflict", f"Execution {execution_id} has not ended.", fix="Cancel it first.")
    services = call.services
    for cache in (services.reader, services.tracks, services.checkpoints, services.collected):
        cache.forget(execution_id)
    return Told(execution_id=execution_id, status="deleted", last_seq=row["last_seq"])
