"""What an alert is about. Tested in tests/server/api/test_alerts.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from noetl.dsl.diagnostic import did_you_mean
from noetl.model.letters import DeadLetter
from noetl.model.outcome import class_of
from noetl.observe.alerts import EXEMPLARS
from noetl.ports import Selection
from noetl.ports.letters import LetterSelection
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import not_found
from noetl.wire.answers import AlertPayload
from noetl.wire.requests import AlertQuery

_PAGE, _PAGES = 100, 5  # dead letters that are looked at
_RECENT: Final = 200  # executions that are looked at
_TAIL: Final = 1_000  # events of each
_FAILED: Final = ("failed", "partial", "cancelled")
_LATE: Final = ("ExecutionSLAExceeded", "LeasesLost")
_OPEN: Final = ("QueueStalled", "WorkerStalled")
_NONE: Final = ("ExportLagging", "OutboxStuck")
noun = Noun("alerts", "What alerts are about.")


@noun.route("GET", "/api/alerts/{name}", "viewer", problems=(404,), of="path")
async def alert(call: Call, name: str, query: AlertQuery) -> AlertPayload:
    """Return an execution that an alert is about, with its step and its error.

    The labels of the alert are the query: `workflow`, `step`, `kind`, `sink`, `pool`, `worker_id`. Without a matching
    execution `execution_id` is null.
    """
    if name not in EXEMPLARS:
        raise not_found(
            f"No alert {name[:100]!r}.{did_you_mean(name, EXEMPLARS)}", "deploy/prometheus/alerts.yaml names them."
        )
    payload = AlertPayload(alert=name, workflow_ref=query.workflow, step_id=query.step, error_rate=query.error_rate)
    if name in _NONE:
        return payload
    if name in _OPEN:
        return await _of_work(call, query, payload)
    if name not in _LATE:
        async for letter in _letters(call, query):
            return _about(call, payload, letter.execution_id, letter.path, letter.step_id, letter.error)
    return await _of_executions(call, query, payload, failed=name not in _LATE)


async def _letters(call: Call, query: AlertQuery) -> AsyncIterator[DeadLetter]:
    """Yield the dead letters that the labels match, the newest first."""
    before: str | None = None
    for _ in range(_PAGES):
        selection = LetterSelection(
            path=query.workflow or None,
            step_id=query.step or None,
            tool_kind=query.kind or None,
            before=before,
            limit=_PAGE,
            within=call.reach,
        )
        found = await call.services.store.letters(selection)
        for letter in found:
            if not query.sink or letter.sink_id == query.sink:
                yield letter
        if len(found) < _PAGE:
            return
        before = found[-1].message_id


async def _of_executions(call: Call, query: AlertQuery, payload: AlertPayload, *, failed: bool) -> AlertPayload:
    """Return a playbook's newest failed execution, or its longest recent one."""
    if not query.workflow:
        return payload
    status = _FAILED if failed else ()
    selection = Selection(status=status, path=query.workflow, limit=_RECENT, within=call.reach)
    rows = await call.services.store.executions(selection)
    if not rows:
        return payload
    now = call.services.clock.now()
    row = rows[0] if failed else max(rows, key=lambda one: (one.get("ended_at") or now) - one.get("started_at", now))
    return _of_row(call, payload, row, query.step)


async def _of_work(call: Call, query: AlertQuery, payload: AlertPayload) -> AlertPayload:
    """Return the oldest execution that waits for a worker, or that a worker has."""
    selection = Selection(status=("running",), limit=_RECENT, within=call.reach)
    for row in reversed(await call.services.store.executions(selection)):
        step = await (_begun(call, row, query.worker_id) if query.worker_id else _waiting(call, row))
        if step:
            return _of_row(call, payload, row, step)
    return payload


async def _waiting(call: Call, row: Mapping[str, Any]) -> str:
    """Return a step of an execution whose work is queued."""
    queued = (await call.services.store.line(str(row["execution_id"]))).work
    return next((_step_of(work_id) for work_id in queued), "")


async def _begun(call: Call, row: Mapping[str, Any], worker_id: str) -> str:
    """Return the last step that a worker began, if it has not ended."""
    first = max(0, int(row["last_seq"]) - _TAIL)
    for event in reversed(await call.services.store.read(str(row["execution_id"]), first, _TAIL)):
        if event.event_type in ("step.done", "step.failed"):
            return ""
        if event.event_type in ("step.started", "loop.iteration.started") and event.payload.get("worker") == worker_id:
            return _step_of(f":{event.step_run_id}")
    return ""


def _step_of(work_id: str) -> str:
    return work_id.partition(":")[2].partition("#")[0]


def _of_row(call: Call, payload: AlertPayload, row: Mapping[str, Any], step: str) -> AlertPayload:
    return _about(call, payload, str(row["execution_id"]), str(row.get("path", "")), step, row.get("error"))


def _about(call: Call, payload: AlertPayload, execution_id: str, path: str, step: str, error: Any) -> AlertPayload:
    known = error if isinstance(error, Mapping) else {}
    return AlertPayload(
        alert=payload.alert,
        execution_id=execution_id,
        workflow_ref=path,
        step_id=step or str(known.get("step", "")),
        error_class=class_of(known) if known else "",
        error_rate=payload.error_rate,
        link=f"{call.services.public_url}/api/executions/{execution_id}",
    )
