"""Control executions. Tested in tests/server/api/test_executions.py."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import msgspec

from noetl.engine.decision.builder import status_of
from noetl.engine.plan.signals import unknown_signal
from noetl.engine.queries.execution_fork import failed_step
from noetl.engine.queries.view import ENDED
from noetl.engine.routing.saga import refused
from noetl.model.messages import AnyMessage, Cancel, Complete, PatchCtx, Pause, Signal, Unpause
from noetl.server.cache.ids import new_execution
from noetl.server.feeds.reader import known_id
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.start_request import path_of_pinned
from noetl.server.operations.forks import fork_from, submit_with_retry
from noetl.server.operations.previews import of_cancel, of_completion, of_fork
from noetl.server.problems import Refusal
from noetl.wire.answers import Forked, Told
from noetl.wire.requests import Cancellation, CtxPatch, Forced, Fork, Retry, SignalSent

_PLACE = "/api/executions/{execution_id}"
noun = Noun("steering", "Control executions.")


async def _may_wait(call: Call, execution_id: str, message: AnyMessage) -> bool:
    """Return whether a replayed dead letter of an ended execution may wait for it."""
    return isinstance(message, Signal) and bool((await call.services.reader.state(execution_id)).replays)


async def _tell(call: Call, execution_id: str, message: AnyMessage, **detail: Any) -> Told:
    row = await call.services.reader.row(execution_id)
    if row.get("status") in ENDED and not await _may_wait(call, execution_id, message):
        raise _has_ended(execution_id, str(row["status"]))
    act = call.act(execution_id, **detail)
    row = dict(await submit_with_retry(call.services.control, execution_id, message, act))
    return Told(execution_id=execution_id, status=str(row["status"]), last_seq=row["last_seq"])


@noun.route(
    "POST",
    _PLACE + "/cancel",
    "operator",
    act="execution.cancel",
    example={"reason": "wrong date", "compensate": True},
    problems=(404, 409, 503),
    of="execution",
)
async def cancel(call: Call, execution_id: str, body: Cancellation) -> Told:
    """Cancel an execution with its children, or one step-run.

    An execution that is compensating is not cancelled (409), unless `abandon` is set.
    """
    if not body.cascade:
        raise Refusal(
            422, "invalid-input", "Children are always cancelled with their parent.", where="$.cascade", fix="Omit it."
        )
    reason = body.reason or f"it was cancelled by {call.actor.name}"
    if body.compensate and body.run is not None:
        text = "A single step-run is cancelled without compensation: its router decides what follows."
        raise Refusal(422, "invalid-input", text, where="$.compensate", fix="Omit `run` or `compensate`.")
    if body.abandon and (body.compensate or body.run is not None):
        text = "`abandon` stops the compensation of a whole execution."
        raise Refusal(422, "invalid-input", text, where="$.abandon", fix="Omit `run` and `compensate`.")
    if body.run is None and not body.abandon:
        state = await call.services.reader.state(execution_id)
        why = refused(await call.services.control.plan(state.playbook), state) if state.phase == "closing" else None
        if why is not None:
            raise Refusal(409, "undoing", why, fix="Wait for its end, or send `abandon: true` to stop compensating.")
    if body.dry_run:
        return await _preview(call, execution_id, body)
    message = Cancel(
        uuid4().hex, reason, body.run, by=call.actor.name, compensate=body.compensate, abandon=body.abandon
    )
    detail = {name: True for name in ("compensate", "abandon") if getattr(body, name)}
    return await _tell(call, execution_id, message, reason=body.reason, run=body.run, **detail)


async def _preview(call: Call, execution_id: str, body: Cancellation | str) -> Told:
    """Return what a cancellation, or the completion of a step by hand, would do."""
    state = await call.services.reader.state(execution_id)
    if state.phase == "ended":
        raise _has_ended(execution_id, status_of(state))
    if isinstance(body, str):
        preview = of_completion(state, body)
    else:
        plan = await call.services.control.plan(state.playbook)
        preview = of_cancel(plan, state, body.run, body.compensate, body.abandon)
    call.skip_audit()
    return Told(execution_id=execution_id, status=status_of(state), last_seq=state.seq, preview=preview)


def _has_ended(execution_id: str, status: str) -> Refusal:
    detail = f"Execution {execution_id} has ended with status {status}."
    return Refusal(409, "ended", detail, fix="Fork it, or retry it from the step that failed.")


@noun.route("POST", _PLACE + "/pause", "operator", act="execution.pause", problems=(404, 409, 503), of="execution")
async def pause(call: Call, execution_id: str) -> Told:
    """Pause an execution: running steps finish, no new ones start."""
    return await _tell(call, execution_id, Pause(uuid4().hex))


@noun.route("POST", _PLACE + "/resume", "operator", act="execution.resume", problems=(404, 409, 503), of="execution")
async def resume(call: Call, execution_id: str) -> Told:
    """Resume a paused execution."""
    return await _tell(call, execution_id, Unpause(uuid4().hex))


@noun.route(
    "POST",
    _PLACE + "/signal",
    "operator",
    act="execution.signal",
    example={"name": "approved", "data": {"by": "Ada"}},
    problems=(404, 409, 503),
    of="execution",
)
async def signal(call: Call, execution_id: str, body: SignalSent) -> Told:
    """Send a signal to an execution; idempotent with an `Idempotency-Key`."""
    key = call.idempotency_key()
    name = f"signal:{call.actor.name}:{key}" if key else uuid4().hex
    row = await call.services.reader.row(execution_id)  # first: once the signal is applied, nothing may fail
    warning = unknown_signal((await call.services.control.plan(row["playbook"])).playbook, body.name)
    told = await _tell(call, execution_id, Signal(name, body.name, body.data), name=body.name)
    return told if warning is None else msgspec.structs.replace(told, warnings=[warning])


@noun.route(
    "PATCH",
    _PLACE + "/ctx",
    "editor",
    act="execution.patch",
    example={"writes": {"limit": 10}},
    problems=(404, 409, 503),
    of="execution",
)
async def patch(call: Call, execution_id: str, body: CtxPatch) -> Told:
    """Change values in `ctx`."""
    message = PatchCtx(uuid4().hex, body.writes, call.actor.name)
    return await _tell(call, execution_id, message, keys=sorted(body.writes))


@noun.route(
    "POST",
    "/api/admin/executions/{execution_id}/steps/{step}/force-complete",
    "admin",
    act="step.force-complete",
    example={"result": {"rows": []}, "reason": "done by hand"},
    problems=(404, 409, 503),
    of="execution",
)
async def complete(call: Call, execution_id: str, step: str, body: Forced) -> Told:
    """Complete a step without its work: runs end, parked tokens continue."""
    state = await call.services.reader.state(execution_id)
    waiting = [run.step for run in state.runs.values() if run.phase != "routing"]
    waiting += [token.step for token in state.tokens.values()]
    if step not in waiting and state.phase != "ended":
        active = ", ".join(dict.fromkeys(waiting)) or "none"
        detail = f"Step `{step}` has no active run. Active steps: {active}."
        raise Refusal(409, "not-waiting", detail, fix="Name an active step.")
    if body.dry_run:
        return await _preview(call, execution_id, step)
    message = Complete(uuid4().hex, step, body.result, call.actor.name, body.reason)
    return await _tell(call, execution_id, message, step=step, reason=body.reason)


@noun.route(
    "POST",
    _PLACE + "/fork",
    "operator",
    status=201,
    act="execution.fork",
    example={"start": "load", "ctx": {"limit": 10}},
    problems=(400, 404, 409),
    of="execution",
)
async def fork(call: Call, execution_id: str, body: Fork) -> Forked:
    """Start a new execution with this one's history up to a step or an event."""
    asked = (body.ctx, body.workload, body.playbook or "", body.dry_run)
    return await fork_execution(call, execution_id, body.start, *asked)


@noun.route(
    "POST",
    _PLACE + "/retry",
    "operator",
    status=201,
    act="execution.retry",
    example={"latest": True},
    problems=(400, 404, 409),
    of="execution",
)
async def retry(call: Call, execution_id: str, body: Retry) -> Forked:
    """Continue from the failed step in a new execution."""
    return await retry_execution(call, execution_id, body)


async def retry_execution(call: Call, execution_id: str, body: Retry) -> Forked:
    """Fork an execution from its failed step. Raises Refusal."""
    services = call.services
    state = await services.reader.state(execution_id)
    step = body.step or failed_step(state)
    if step is None:
        raise Refusal(409, "nothing-failed", f"No step of execution {execution_id} has failed.", fix="Fork it instead.")
    playbook = ""
    if body.latest:
        latest = await services.store.content_hash(state.path)
        if latest is None:
            detail = f"`{state.path}` is no longer in the catalog."
            raise Refusal(409, "conflict", detail, where="$.latest", fix="Register it, or omit `latest`.")
        playbook = latest
    return await fork_execution(call, execution_id, step, body.ctx, {}, playbook, body.dry_run, body.reason)


async def fork_execution(
    call: Call,
    source: str,
    start: str,
    ctx: dict[str, Any],
    workload: dict[str, Any],
    playbook: str,
    is_dry_run: bool = False,
    reason: str = "",
) -> Forked:
    """Fork an execution, or say what that would do. Raises Refusal."""
    services = call.services
    if ctx or workload:
        call.require("editor")  # as `PATCH …/ctx`
    await services.reader.row(known_id(source))
    if playbook and call.reach is not None:
        await path_of_pinned(call, playbook)
    if is_dry_run:
        seq, preview = of_fork(await services.store.read(source), start)
        call.skip_audit()
        return Forked(execution_id="", source=source, seq=seq, status="", preview=preview)
    made_id = new_execution(services.clock.now())
    made = await fork_from(
        services.store,
        services.control,
        source,
        made_id,
        start,
        ctx=ctx,
        workload=workload,
        at=services.clock.now(),
        playbook=playbook,
        act=call.act(made_id, source=source, start=start, **({"reason": reason} if reason else {})),
    )
    row = await services.reader.row(made_id)
    return Forked(execution_id=made_id, source=source, seq=made.seq, status=str(row["status"]))
