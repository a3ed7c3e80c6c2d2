"""Starts executions: workload, payload, validation, and the entry token.

An invalid payload is refused before anything is written (`check`); that of a child fails the child. Tested in
tests/unit/engine/routing/test_start.py and test_ending.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from noetl.dsl.analysis.workload_schema import SchemaProblem, misfits
from noetl.engine.decision.builder import DecisionBuilder
from noetl.engine.decision.evaluations import Evaluations
from noetl.engine.decision.scope import Scope, functions, number, render
from noetl.engine.decision.work import open_work
from noetl.engine.plan.plan import Plan
from noetl.engine.routing.route import failure, send_token
from noetl.engine.routing.saga import close
from noetl.engine.routing.slots import limits_of, renewed, slot_of, without_held
from noetl.engine.state.execution import Execution
from noetl.engine.state.writes import merge, plain
from noetl.expr import TemplateError, first_undefined
from noetl.model.errors import InvalidPayload, LimitReached
from noetl.model.messages import Admit, Start

_PROBLEMS_SHOWN = 5


def check(
    plan: Plan, execution_id: str, message: Start, at: int, evaluations: Evaluations | None = None
) -> dict[str, Any]:
    """Return the workload of a new execution. Raises InvalidPayload and Heavy."""
    return _checked(plan, execution_id, message, at, evaluations)[0]


def _checked(
    plan: Plan, execution_id: str, message: Start, at: int, evaluations: Evaluations | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the workload of a new execution, and its limits."""
    if plan.lacks is not None:
        raise InvalidPayload(plan.lacks)
    workload = _workload(plan, execution_id, message, at, evaluations)
    if not plan.has_limits:
        return workload, None
    return workload, limits_of(plan, Execution(execution_id, path=message.path, workload=workload), at, evaluations)


def _workload(
    plan: Plan, execution_id: str, message: Start, at: int, evaluations: Evaluations | None
) -> dict[str, Any]:
    if plan.fixed_workload is not None:
        return merge(plan.fixed_workload, message.payload)
    state = Execution(execution_id)
    scope = Scope(state, {}, evaluations=evaluations)
    calls = functions(state, at)
    workload: dict[str, Any] = {}
    for key, value in plan.playbook.workload.items():
        try:
            rendered = render(value.data, scope, calls)
            missing = first_undefined(rendered)
            if missing is not None:
                missing.fail()
            workload[key] = plain(rendered)
        except TemplateError as error:
            if key in message.payload:
                continue  # the payload replaces it
            raise InvalidPayload(f"`workload.{key}` cannot be evaluated: {error.message}") from None
    workload = merge(workload, message.payload)
    check_schema(plan, workload)
    return workload


def misfit(
    plan: Plan,
    execution_id: str,
    like: Start,
    payloads: Sequence[Mapping[str, Any]],
    at: int,
    evaluations: Evaluations | None = None,
) -> tuple[int, InvalidPayload] | None:
    """Return the index and error of the first invalid payload; None if all fit.

    Raises InvalidPayload if no execution can start, and Heavy. The evaluations are those of all payloads. Without a schema, a payload only replaces values: if the workload is
    valid without one, every payload is.
    """
    if plan.lacks is not None:
        raise InvalidPayload(plan.lacks)
    evaluations = evaluations or Evaluations()
    if plan.playbook.executor.setting("workload_schema") is None:
        try:
            check(plan, execution_id, like, at, evaluations)
            return None
        except InvalidPayload:
            pass  # some payloads may replace what cannot be evaluated
    for index, payload in enumerate(payloads):
        try:
            check(plan, execution_id, replace(like, payload=payload), at, evaluations)
        except InvalidPayload as problem:
            return index, problem
    return None


def check_schema(plan: Plan, workload: Mapping[str, Any]) -> None:
    """Validate a workload against the playbook's schema. Raises InvalidPayload."""
    schema = plan.playbook.executor.setting("workload_schema")
    if not isinstance(schema, dict | bool):
        return
    try:
        errors = misfits(schema, workload)
    except SchemaProblem as problem:
        raise InvalidPayload(f"`executor.spec.workload_schema` {problem}") from None
    if errors:
        lines = [f"{path.replace('$', 'workload', 1)}: {message}" for path, message in errors[:_PROBLEMS_SHOWN]]
        more = f" (and {len(errors) - _PROBLEMS_SHOWN} more)" if len(errors) > _PROBLEMS_SHOWN else ""
        raise InvalidPayload("the payload does not fit `executor.spec.workload_schema`: " + "; ".join(lines) + more)


def _request(message: Start) -> dict[str, Any]:
    request: dict[str, Any] = {"path": message.path, "playbook": message.playbook, "payload": message.payload}
    if message.parent is not None:
        request["parent"] = message.parent
    if message.iter is not None:
        request["iter"] = message.iter
    if message.tags:
        request["tags"] = list(message.tags)
    if message.pool:
        request["pool"] = message.pool
    if message.priority:
        request["priority"] = message.priority
    if message.trace:
        request["trace"] = message.trace
    return request


def start(d: DecisionBuilder, message: Start) -> None:
    """Begin an execution; a repeated start changes nothing."""
    state = d.state
    if state.phase != "pending":
        return
    d.emit("playbook.execution.requested", state.execution_id, _request(message))
    try:
        workload, limits = _checked(d.plan, state.execution_id, message, d.at, d.evaluations)
        limits = None if limits is None else _limits(message, limits)
    except InvalidPayload as problem:
        _refuse(d, failure("schema", str(problem), "INVALID_PAYLOAD"))
        return
    except LimitReached as problem:
        if message.parent is None or "run_id" not in message.parent:
            raise
        _refuse(d, failure("unknown", str(problem), "LIMIT_REACHED"))
        return
    d.emit("playbook.request.evaluated", state.execution_id, {"workload": workload}, status="accepted")
    if limits is not None and message.queued:
        d.emit("execution.queued", state.execution_id, queued_by(limits, message.queued))
    else:
        if limits is not None:
            _admit(d, limits)
        _begin(d)


def admit(d: DecisionBuilder, _message: Admit) -> None:
    """Begin an execution that its limits kept waiting, if they allow it now."""
    state = d.state
    if state.phase != "queued" or state.paused:
        return
    limits = None if state.slot is None else renewed(state.slot, d.plan, state)
    _admit(d, limits)
    if not state.has_begun:
        _begin(d)
        return
    # A fork: what it did in its history goes on.
    rearm(d, state.started_at)
    for _, item in open_work(d.plan, state, {}):
        d.queue(item)


def rearm(d: DecisionBuilder, since: int) -> None:
    """Set timers that were withheld since a time, in which time limits do not run."""
    for timer in list(d.state.timers.values()):
        if timer.cause == "wake":
            d.arm_timer(timer.timer_id, timer.at)
        else:
            run = d.state.runs.get(timer.run_id or "") or d.state.replays.get(timer.run_id or "")
            d.set_timer(timer.timer_id, timer.cause, timer.at + d.at - since, run, timer.index)


def _limits(message: Start, given: dict[str, Any]) -> dict[str, Any] | None:
    limits = without_held(given, (message.parent or {}).get("groups") or ())
    if limits is not None and message.queued:
        check_waits(limits, message.queued)
    return limits


def check_waits(limits: Mapping[str, Any], by: str) -> None:
    """Refuse an execution beyond its limits that must not wait. Raises LimitReached.

    Its playbook says so of its own limits only: for a place under a limit of the server it waits.
    """
    if by != "above" and limits.get("on_limit") == "reject":
        raise LimitReached(
            f"{_reached(limits, by)}, and `executor.spec.concurrency.on_limit` is `reject`. Start it again later."
        )


def queued_by(limits: Mapping[str, Any], by: str) -> dict[str, Any]:
    """Return limits, and which of them keeps an execution waiting."""
    return {**limits} if by == "limit" else {**limits, "by": by}


def _reached(limits: Mapping[str, Any], by: str) -> str:
    """Return which limit admits no further execution now."""
    if by == "rate":
        rate = limits["rate"]
        return f"The rate of {rate['per_second']:g} executions per second with the key {rate['group']!r} is reached"
    return f"{limits['limit']} executions with the concurrency key {limits['group']!r} run already"


def _refuse(d: DecisionBuilder, error: dict[str, Any]) -> None:
    name = d.state.execution_id
    d.emit("playbook.request.evaluated", name, {"workload": {}, "error": error}, status="refused")
    d.emit("execution.cancelled", name, {"cause": "refused", "outcome": "failed", "error": error})
    while close(d):
        pass


def _admit(d: DecisionBuilder, limits: Mapping[str, Any] | None) -> None:
    """Take a place under limits; without any, those that it waited for are gone."""
    d.emit("execution.admitted", d.state.execution_id, limits or {})
    if limits is not None:
        d.take_slot(slot_of(limits, d.at))


def _begin(d: DecisionBuilder) -> None:
    state = d.state
    d.emit("playbook.started", state.execution_id)
    d.emit("workflow.started", "workflow", {"entry": d.plan.entry})
    allowed = d.plan.setting("timeout_s")
    seconds = number(allowed, d.scope({}), d.calls) if allowed is not None else None
    if seconds is not None:
        d.set_timer("execution", "execution", d.at + round(seconds * 1000))
    send_token(d, d.plan.entry, {}, {})
