"""Cancel and retry many executions. Tested in tests/server/api/test_previews.py."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from noetl.engine.decision.builder import status_of
from noetl.engine.queries.execution_fork import failed_step
from noetl.engine.routing.saga import refused
from noetl.model.errors import Conflict, InvalidInput, UnknownExecution
from noetl.model.messages import Cancel
from noetl.ports import Selection
from noetl.server.api.executions.steering import retry_execution
from noetl.server.feeds.reader import is_id
from noetl.server.http.endpoint import Call, Noun
from noetl.server.operations.forks import submit_with_retry
from noetl.server.problems import Refusal
from noetl.wire.answers import ManyTold, RefusedAction
from noetl.wire.requests import ExecutionsFilter, ManyCancelled, ManyRetried, Retry

_MOST, _SHOWN = 1_000, 100
noun = Noun("many", "Actions on many executions.")
Act = Callable[[Call, str, bool], Awaitable[str]]


@noun.route(
    "POST",
    "/api/executions/cancel",
    "operator",
    act="execution.cancel",
    example={"query": {"path": "orders/*", "status": ["waiting"]}, "reason": "wrong date", "dry_run": True},
    problems=(422,),
    of="path",
)
async def cancel_many(call: Call, body: ManyCancelled) -> ManyTold:
    """Cancel up to 1,000 executions; each is audited on its own."""

    async def act(call: Call, name: str, is_dry_run: bool) -> str:
        state = await call.services.reader.state(name)
        if state.phase == "ended":
            raise Refusal(409, "ended", f"It has ended with status {status_of(state)}.")
        why = refused(await call.services.control.plan(state.playbook), state) if state.phase == "closing" else None
        if why is not None:
            raise Refusal(409, "undoing", why)
        if not is_dry_run:
            message = Cancel(uuid4().hex, body.reason or f"it was cancelled by {call.actor.name}", by=call.actor.name)
            await submit_with_retry(call.services.control, name, message, call.act(name, reason=body.reason))
        return ""

    return await _each(call, body.ids, body.query, body.dry_run, act)


@noun.route(
    "POST",
    "/api/executions/retry",
    "operator",
    act="execution.retry",
    example={"query": {"path": "orders/*", "status": ["failed"]}, "latest": True, "dry_run": True},
    problems=(422,),
    of="path",
)
async def retry_many(call: Call, body: ManyRetried) -> ManyTold:
    """Retry up to 1,000 executions from their failed steps; each is audited."""

    async def act(call: Call, name: str, is_dry_run: bool) -> str:
        state = await call.services.reader.state(name)
        if state.phase != "ended":
            raise Refusal(409, "not-ended", f"It is {status_of(state)}.")
        if failed_step(state) is None:
            raise Refusal(409, "nothing-failed", "No step of it has failed.")
        made = await retry_execution(call, name, Retry(latest=body.latest, reason=body.reason, dry_run=is_dry_run))
        return made.execution_id

    return await _each(call, body.ids, body.query, body.dry_run, act)


async def _each(
    call: Call, ids: tuple[str, ...], query: ExecutionsFilter | None, is_dry_run: bool, act: Act
) -> ManyTold:
    rows, is_whole = await _chosen(call, ids, query)
    done: list[str] = []
    started: list[str] = []
    refusals: list[RefusedAction] = []
    statuses: dict[str, int] = {}
    for name, row in rows.items():
        try:
            if row is None:
                raise Refusal(404, "not-found", "There is no such execution.")
            made = await act(call, name, is_dry_run)
        except (Refusal, Conflict, InvalidInput, UnknownExecution) as error:
            refusals.append(RefusedAction(execution_id=name, reason=str(getattr(error, "detail", "") or error)))
            continue
        done.append(name)
        started += [made] if made else []
        status = str(row["status"])
        statuses[status] = statuses.get(status, 0) + 1
    call.skip_audit()
    return ManyTold(
        count=len(done),
        by_status=statuses,
        executions=done[:_SHOWN],
        refused=refusals[:_SHOWN],
        dry_run=is_dry_run,
        is_whole=is_whole,
        started=started[:_SHOWN],
    )


async def _chosen(
    call: Call, ids: tuple[str, ...], query: ExecutionsFilter | None
) -> tuple[dict[str, dict[str, Any] | None], bool]:
    """Return the executions by id; None for one that does not exist for the caller."""
    if bool(ids) == (query is not None):
        raise Refusal(422, "invalid-input", "Name executions in `ids`, or choose them with `query`.", where="$")
    store = call.services.store
    if query is None:
        names = tuple(dict.fromkeys(ids))
        known = tuple(filter(is_id, names))  # the others are refused one by one
        found = await store.executions(Selection(ids=known, within=call.reach, limit=_MOST))
        rows = {str(row["execution_id"]): dict(row) for row in found}
        return {name: rows.get(name) for name in names}, True
    is_prefix = query.path is not None and query.path.endswith("*")
    selection = Selection(
        status=query.status,
        path=None if is_prefix else query.path,
        prefix=str(query.path)[:-1] if is_prefix else None,
        text=query.search,
        tag=query.tag,
        parent=query.parent,
        since=query.since,
        until=query.until,
        needs_signal=query.needs_signal,
        limit=_MOST + 1,
        within=call.reach,
    )
    found = await store.executions(selection)
    return {str(row["execution_id"]): dict(row) for row in found[:_MOST]}, len(found) <= _MOST
