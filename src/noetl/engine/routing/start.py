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
from noetl.engine.plan.plan import Plan
from noetl.engine.routing.route import failure, send_token
from noetl.engine.routing.saga import close
from noetl.engine.routing.slots import limits_of, slot_of
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
    if plan.lacks is not None:
        raise InvalidPayload(plan.lacks)
    workload = _workload(plan, execution_id, message, at, evaluations)
    if plan.has_limits:
        limits_of(plan, Execution(execution_id, path=message.path, workload=workload), at, evaluations)
    return workload


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
        workload = check(d.plan, state.execution_id, message, d.at, d.evaluations)
        limits = _limits(d, message, workload) if d.plan.has_limits else None
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
        d.emit("execution.queued", state.execution_id, limits)
    else:
        _begin(d, limits)


def admit(d: DecisionBuilder, _message: Admit) -> None:
    """Begin an execution that its limits kept waiting, if they allow it now."""
    if d.state.phase == "queued" and not d.state.paused:
        _begin(d, d.state.slot)


def _limits(d: DecisionBuilder, message: Start, workload: dict[str, Any]) -> dict[str, Any] | None:
    state = Execution(d.state.execution_id, path=message.path, workload=workload)
    limits = limits_of(d.plan, state, d.at, d.evaluations)
    if limits is not None and limits["group"] in ((message.parent or {}).get("groups") or ()):
        return None  # its parent holds the place and waits for it
    if limits is not None and message.queued and limits.get("on_limit") == "reject":
        raise LimitReached(
            f"{limits['limit']} executions with the concurrency key {limits['group']!r} run already, and"
            " `executor.spec.concurrency.on_limit` is `reject`. Start it again when one of them has ended."
        )
    return limits


def _refuse(d: DecisionBuilder, error: dict[str, Any]) -> None:
    name = d.state.execution_id
    d.emit("playbook.request.evaluated", name, {"workload": {}, "error": error}, status="refused")
    d.emit("execution.cancelled", name, {"cause": "refused", "outcome": "failed", "error": error})
    while close(d):
        pass


def _begin(d: DecisionBuilder, limits: Mapping[str, Any] | None) -> None:
    state = d.state
    if limits is not None:
        d.emit("execution.admitted", state.execution_id, limits)
        d.take_slot(slot_of(limits, d.at))
    d.emit("playbook.started", state.execution_id)
    d.emit("workflow.started", "workflow", {"entry": d.plan.entry})
    allowed = d.plan.setting("timeout_s")
    seconds = number(allowed, d.scope({}), d.calls) if allowed is not None else None
    if seconds is not None:
        d.set_timer("execution", "execution", d.at + round(seconds * 1000))
    send_token(d, d.plan.entry, {}, {})
