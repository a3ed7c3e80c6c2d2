"""Step-runs and items of loops. Tested in tests/server/api/test_runs.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from msgspec import convert, to_builtins

from noetl.engine.queries.deadlines import deadlines, under_way
from noetl.engine.queries.history.loop_items import MOST_MARKS, Items
from noetl.engine.queries.history.step_run import RunHistory, open_state
from noetl.engine.state.dead_letters import letter_id
from noetl.model.events import Event
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal, not_found
from noetl.wire.screens.runs import ItemRange, ItemRow, ItemsQuery, ItemsRow, RunQuery, RunRow

_PAGE = 2_000
noun = Noun("runs", "Step-runs of an execution, and the items of their loops.")


@noun.route("GET", "/api/executions/{execution_id}/runs", "viewer", problems=(404,), of="execution")
async def run(call: Call, execution_id: str, query: RunQuery) -> RunRow:
    """Return a step-run or an item: input, attempts, outcome, deadlines, dead letter."""
    await call.services.reader.row(execution_id)
    history, own, seq = RunHistory(query.run, query.item), list[Event](), 0
    async for event in _events(call, execution_id, query.seq):
        seq = event.seq
        history.add(event)
        if event.step_run_id == query.run and query.item is None:
            own.append(event)
    view = history.view
    if not history.is_known or not view.scheduled_seq:
        raise _unknown(execution_id, query.run)
    made: dict[str, Any] = {**to_builtins(view), "execution_id": execution_id, "seq": seq, "deadlines": []}
    if query.seq is None:
        made |= await _now(call, execution_id, history, own)
    made |= await _letter(call, letter_id(execution_id, query.run, query.item))
    return convert(made, RunRow)


@noun.route("GET", "/api/executions/{execution_id}/items", "viewer", problems=(404, 409), of="execution")
async def items(call: Call, execution_id: str, query: ItemsQuery) -> ItemsRow:
    """Return the items of a loop: all as a map of marks, or a page of a list."""
    await call.services.reader.row(execution_id)
    found, is_known, seq = Items(query.run), False, 0
    async for event in _events(call, execution_id):
        seq, is_known = event.seq, is_known or event.step_run_id == query.run
        found.add(event)
    if not is_known:
        raise _unknown(execution_id, query.run)
    if not found.is_loop:
        detail = f"Step-run {query.run[:80]} of execution {execution_id} has no loop, or its list is not evaluated yet."
        raise Refusal(409, "no-loop", detail, fix="Name a step-run of a step with a `loop`.")
    found.close(await call.services.reader.state(execution_id))
    answer: dict[str, Any] = {"execution_id": execution_id, "run": query.run, "seq": seq}
    answer |= {"total": len(found.marks), "counts": found.counts()}
    if query.as_ == "list":
        rows = found.page(query.state, query.sort == "slow", query.after, query.limit)
        answer["rows"] = [convert(one, ItemRow, from_attributes=True) for one in rows]
        answer["next"] = query.after + len(rows) if len(rows) == query.limit else None
    elif len(found.marks) <= MOST_MARKS:
        answer["map"] = found.marks.decode("ascii")
    else:
        answer["ranges"] = [convert(one, ItemRange, from_attributes=True) for one in found.ranges()]
    return ItemsRow(**answer)


async def _events(call: Call, execution_id: str, to: int | None = None) -> AsyncIterator[Event]:
    """Yield the events of an execution; other requests go on between pages."""
    after = 0
    while True:
        most = _PAGE if to is None else min(_PAGE, to - after)
        page = await call.services.store.read(execution_id, after, most) if most > 0 else []
        for event in page:
            yield event
        if len(page) < _PAGE:
            return
        after = page[-1].seq
        await asyncio.sleep(0)


async def _now(call: Call, execution_id: str, history: RunHistory, own: list[Event]) -> dict[str, Any]:
    """Return what only the current state knows: deadlines, and what is queued."""
    state = await call.services.reader.state(execution_id)
    plan = await call.services.control.plan(state.playbook)
    active, view = state.runs.get(history.view.run), history.view
    if active is None or view.ended_seq is not None:
        return {}
    times = deadlines(plan, state, active, under_way(own), view.item)
    return {"state": open_state(state, view), "deadlines": to_builtins(times)}


async def _letter(call: Call, name: str) -> dict[str, Any]:
    letter = await call.services.store.letter(name)
    if letter is None:
        return {}
    row = {"message_id": name, **{key: getattr(letter, key) for key in ("status", "fingerprint", "attempts")}}
    return {"letter": row, "input": dict(letter.payload) or None}


def _unknown(execution_id: str, run: str) -> Refusal:
    detail = f"Execution {execution_id} has no step-run {run[:80]!r}."
    return not_found(detail, "GET /api/executions/{id}/events?type=step.scheduled lists its step-runs.")
