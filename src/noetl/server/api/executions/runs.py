"""Step-runs and items of loops. Tested in tests/server/api/test_runs.py."""

from __future__ import annotations

from typing import Any

from msgspec import convert, to_builtins

from noetl.engine.queries.deadlines import UnderwayLog, deadlines
from noetl.engine.queries.history.loop_items import MOST_MARKS, Items
from noetl.engine.queries.history.step_run import RunHistory, open_state
from noetl.engine.state.dead_letters import letter_id
from noetl.model.events import Event
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal, not_found
from noetl.wire.screens.runs import ItemRange, ItemRow, ItemsQuery, ItemsRow, RunQuery, RunRow

_BEFORE = 2  # events before `step.scheduled` that belong to a step-run: that it was forced
noun = Noun("runs", "Step-runs of an execution, and the items of their loops.")


@noun.route("GET", "/api/executions/{execution_id}/runs", "viewer", problems=(404,), of="execution")
async def run(call: Call, execution_id: str, query: RunQuery) -> RunRow:
    """Return a step-run or an item: input, attempts, outcome, deadlines, dead letter."""
    last = int((await call.services.reader.row(execution_id))["last_seq"])
    seq = last if query.seq is None else min(query.seq, last)
    after, until = await _window(call, execution_id, query.run)
    told = _Told(query.run, query.item)
    await call.services.collected.once(execution_id, told, after, seq if until is None else min(seq, until))
    history, view = told.history, told.history.view
    if not history.is_known or not view.scheduled_seq:
        raise _unknown(execution_id, query.run)
    made: dict[str, Any] = {**to_builtins(view), "execution_id": execution_id, "seq": seq, "deadlines": []}
    if query.seq is None:
        made |= await _now(call, execution_id, told)
    made |= await _letter(call, letter_id(execution_id, query.run, query.item))
    return convert(made, RunRow)


@noun.route("GET", "/api/executions/{execution_id}/items", "viewer", problems=(404, 409), of="execution")
async def items(call: Call, execution_id: str, query: ItemsQuery) -> ItemsRow:
    """Return the items of a loop: all as a map of marks, or a page of a list."""
    last = int((await call.services.reader.row(execution_id))["last_seq"])
    after, until = await _window(call, execution_id, query.run)
    name = ("items", query.run)
    found = await call.services.collected.get(execution_id, name, lambda: Items(query.run), after, until)
    if not found.is_known:
        raise _unknown(execution_id, query.run)
    if not found.is_loop:
        detail = f"Step-run {query.run[:80]} of execution {execution_id} has no loop, or its list is not evaluated yet."
        raise Refusal(409, "no-loop", detail, fix="Name a step-run of a step with a `loop`.")
    found = found.at(await call.services.reader.state(execution_id))
    answer: dict[str, Any] = {"execution_id": execution_id, "run": query.run, "seq": last}
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


class _Told:
    """Collects what events tell of a step-run, or of an item."""

    def __init__(self, run: str, item: int | None) -> None:
        self.history = RunHistory(run, item)
        self.underway = UnderwayLog()

    def add(self, event: Event) -> None:
        """Take the next event."""
        view = self.history.view
        self.history.add(event)
        if event.step_run_id == view.run and view.item is None:
            self.underway.add(event)


async def _window(call: Call, execution_id: str, run: str) -> tuple[int, int | None]:
    """Return the event before those of a step-run, and its last one if it ended.

    The screen of an execution has its track; without one, the whole log is read.
    """
    live = call.services.tracks.known(execution_id)
    span = (await live.advance()).spans.get(run) if live is not None else None
    if span is None:
        return 0, None
    after = max(0, span.scheduled[0] - _BEFORE)
    return after, None if span.ended is None else span.changed


async def _now(call: Call, execution_id: str, told: _Told) -> dict[str, Any]:
    """Return what only the current state knows: deadlines, and what is queued."""
    state = await call.services.reader.state(execution_id)
    plan = await call.services.control.plan(state.playbook)
    view = told.history.view
    active = state.runs.get(view.run)
    if active is None or view.ended_seq is not None:
        return {}
    times = deadlines(plan, state, active, told.underway.now(), view.item)
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
