"""Ends step-runs and routes: `set`, conditions, `set` of arcs, then tokens.

Evaluated arcs are recorded with the values they read. Tested in tests/unit/engine/routing/test_route.py and test_join.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from noetl.dsl.tree.playbook import Arc, Assign, Step
from noetl.engine.decision.builder import DecisionBuilder
from noetl.engine.decision.needs_load import kind_of, seen
from noetl.engine.decision.scope import EventName, Scope, envelope, render, test
from noetl.engine.plan.step_plan import StepPlan
from noetl.engine.state.dead_letters import about, is_letter
from noetl.engine.state.execution import Execution, StepRun
from noetl.engine.state.writes import ctx_keys, plain, put
from noetl.expr import TemplateError, first_undefined

Error = Mapping[str, Any]
COMPENSATION_ATTEMPTS = 3
_UNREAD = Scope(Execution(""), {})  # for routers without a template


class Ending(Struct):
    """The end of a run."""

    status: str  # ok, error, skipped
    result: Any = None
    error: Error | None = None
    writes: Mapping[str, Any] = {}
    is_loop: bool = False
    inline: bool = True  # False: the result is in the state already and not repeated in the event
    scratch: Mapping[str, Any] = {}  # `step`
    last: Mapping[str, Any] | None = None  # context of the failed work; None if no work failed

    @property
    def failed(self) -> bool:
        return self.status == "error"


class Choice(Struct):
    """The decision of a router."""

    looked: list[dict[str, Any]] = []
    taken: list[int] = []
    broken: Error | None = None
    doubt: Error | None = None  # the first condition that cannot be evaluated, where nothing says what it then does


class Taken(Struct):
    """A taken arc: the args of its token, and its writes to `ctx`."""

    index: int
    step: str
    args: dict[str, Any]
    unbound: list[str] = []  # `args` that are undefined
    writes: Mapping[str, Any] = {}
    skipped: list[dict[str, Any]] = []


class Routing(Struct):
    """What a router decided: its tokens, and the payload of the event in parts."""

    bound: list[Taken]
    evaluated: dict[str, Any]
    exception: dict[str, Any]  # what only a router with a failure or an undefined argument has
    letter: dict[str, Any]


def failure(kind: str, message: str, code: str = "", **details: Any) -> dict[str, Any]:
    """Build an error of the control plane."""
    error: dict[str, Any] = {"kind": kind, "message": message, "retryable": kind == "timeout"}
    return error | ({"code": code} if code else {}) | ({"details": details} if details else {})


def patch(d: DecisionBuilder, writes: Mapping[str, Any], by: str, skipped: list[dict[str, Any]] | None = None) -> None:
    """Write to `ctx`, and let gates be evaluated again."""
    payload: dict[str, Any] = {"writes": plain(ctx_keys(writes)), "by": by}
    if skipped:
        payload["skipped"] = skipped
    d.emit("ctx.patched", "ctx", payload)
    d.retry_gates(d.cause or {"name": EventName("ctx.patched"), "payload": {"writes": payload["writes"], "by": by}})


def end(d: DecisionBuilder, run: StepRun, ending: Ending) -> None:
    """End a run, and route on if it is a step of the flow."""
    known = d.plan.steps[run.step]
    if ending.writes:
        patch(d, ending.writes, run.run_id)
    writes: Mapping[str, Any] = {}
    skipped: list[dict[str, Any]] = []
    if known.step.sets and ending.status != "skipped":
        ending, writes, skipped = _apply_set(d, run, known.step, ending)
    name = _event_name(ending)
    if ending.failed:
        _emit_failed(d, run, ending)
    else:
        _emit_done(d, run, known, ending)
    if writes or skipped:
        patch(d, writes, run.run_id, skipped)
    _retry_gates(d, run, ending, name)
    if run.role == "step":
        route(d, run, known, ending, name)


def _retry_gates(d: DecisionBuilder, run: StepRun, ending: Ending, name: str) -> None:
    if d.plan.has_gates or d.state.tokens:  # else nothing is parked
        payload = {"status": ending.status, "result": seen(ending.result, d.resolved), "error": ending.error}
        d.retry_gates({"name": EventName(name), "step": run.step, "payload": payload})


def _apply_set(
    d: DecisionBuilder, run: StepRun, step: Step, ending: Ending
) -> tuple[Ending, Mapping[str, Any], list[dict[str, Any]]]:
    scope = _scope(d, run, step, ending, _event_name(ending), own={run.step: ending.result})
    values, skipped, broken = _evaluate_set(d, step, step.sets, scope, ending.failed)
    scratch = dict(ending.scratch)
    for key, value in values["step"].items():
        put(scratch, key, value)
    if broken is not None:
        return Ending("error", None, broken, scratch=scratch), values["ctx"], skipped
    ending.scratch = scratch
    return ending, values["ctx"], skipped


def _event_name(ending: Ending) -> str:
    return "step.failed" if ending.failed else "loop.done" if ending.is_loop else "step.done"


def _scope(
    d: DecisionBuilder,
    run: StepRun,
    step: Step,
    ending: Ending,
    name: str,
    status: str | None = None,
    own: Mapping[str, Any] | None = None,
) -> Scope:
    result = seen(ending.result, d.resolved)
    outcome = envelope(status or ending.status, ending.result, result, ending.error)
    payload = {"status": ending.status, "result": result, "error": ending.error}
    event = {"name": EventName(name), "step": run.step, "run_id": run.run_id, "payload": payload}
    fixed = {"outcome": outcome, "output": outcome, "event": event, "step": ending.scratch}
    scope = d.scope(run.args, own, **fixed)
    if step.input:
        rendered_input = Input(d, run, step, scope)
        scope = d.scope(run.args, own, **fixed, input=rendered_input)
    return scope


class Input(Mapping[str, Any]):
    """The step's `input` for its router, rendered on first read to avoid loads."""

    def __init__(self, d: DecisionBuilder, run: StepRun, step: Step, scope: Scope) -> None:
        self._d, self._run, self._step, self._scope = d, run, step, scope

    @cached_property
    def _whole(self) -> Mapping[str, Any]:
        try:
            inputs = render({key: value.data for key, value in self._step.input.items()}, self._scope, self._d.calls)
        except TemplateError:
            inputs = {}
        return {**self._run.args, **inputs}

    def __getitem__(self, key: str) -> Any:
        return self._whole[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)


def _duration(state: Execution, run: StepRun, at: int) -> float:
    since = max(run.scheduled_at, state.started_at)  # the history of a forked execution is older than its start
    return float(at - since) if at > since else 0.0


def _emit_done(d: DecisionBuilder, run: StepRun, known: StepPlan, ending: Ending) -> None:
    duration = _duration(d.state, run, d.at)
    if ending.is_loop and run.loop is not None:
        errors = {"errors": list(run.loop.errors)} if run.loop.errors else {}
        d.emit("loop.done", run.step, {"stats": run.loop.stats(), **errors}, run=run, status="ok", duration_ms=duration)
    payload: dict[str, Any] = {"result": ending.result} if ending.inline and ending.status == "ok" else {}
    if known.compensate is not None and ending.status == "ok":
        payload["compensate"] = known.compensate
    d.emit("step.done", run.step, payload, run, None, ending.status, duration)


def _emit_failed(d: DecisionBuilder, run: StepRun, ending: Ending) -> None:
    payload: dict[str, Any] = {"error": ending.error}
    if ending.result is not None:
        payload["result"] = ending.result
    if run.role == "compensation" and not is_tried_again(run):
        payload["dead"] = True
    dead = payload.get("dead") or run.role == "final"
    letter = _letter(d, run, ending) if dead else {}
    duration = _duration(d.state, run, d.at)
    event = d.emit("step.failed", run.step, payload | letter, run=run, status="error", duration_ms=duration)
    if letter:
        d.update_letter(event)


def is_tried_again(run: StepRun) -> bool:
    """Return whether a failed run is retried: a compensation with attempts left."""
    return run.role == "compensation" and run.attempt < COMPENSATION_ATTEMPTS


def _letter(d: DecisionBuilder, run: StepRun, ending: Ending) -> dict[str, Any]:
    if ending.last is None or ending.is_loop or ending.error is None or not is_letter(ending.error, d.plan.defaults):
        return {}
    return {"letter": {**about(d.state, run, ending.error, ending.last), "error": ending.error}}


def _evaluate_set(
    d: DecisionBuilder, step: Step, assigns: Iterable[Assign], scope: Scope, failed: bool
) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]], Error | None]:
    """Evaluate a `set` by scope; after a failure, unreadable values are skipped."""
    values: dict[str, dict[str, Any]] = {"ctx": {}, "step": {}}
    skipped: list[dict[str, Any]] = []
    for assign in assigns:
        if assign.scope == "iter":
            continue  # no iteration is left to read it
        try:
            value = render(assign.value.data, scope, d.calls)
            missing = first_undefined(value)
            if missing is not None and (failed or d.plan.setting("strict_templates", step, True) is not False):
                missing.fail()
            values[assign.scope][assign.key] = plain(value)
        except TemplateError as error:
            if not failed:
                message = f"`set: {assign.target}` of step `{step.name}` cannot be evaluated: {error.message}"
                return (
                    {"ctx": {}, "step": {}},
                    [],
                    failure(kind_of(error), message + (f"; {error.fix}" if error.fix else "")),
                )
            skipped.append({"key": assign.target, "reason": error.message})
    return values, skipped, None


def route(d: DecisionBuilder, run: StepRun, known: StepPlan, ending: Ending, name: str) -> None:
    """Route, or follow `on_step_fail`; the plan keeps a routing that reads nothing."""
    routing = known.routings.get(name) if ending.status == "ok" else None
    if routing is None:
        routing = _decide_routing(d, run, known, ending, name)
        if ending.status == "ok" and not (known.router_reads or routing.exception):
            known.remember_routing(name, routing)
    _send(d, run, name, routing)


def _decide_routing(d: DecisionBuilder, run: StepRun, known: StepPlan, ending: Ending, name: str) -> Routing:
    step = known.step
    failed = ending.failed
    scope = _scope(d, run, step, ending, name) if known.router_reads else _UNREAD
    choice = _choose(d, known, scope, takes_bare=not failed)
    action = None
    if choice.broken is not None or not choice.taken:
        action, scope = _untaken(d, run, known, ending, scope, choice)
    bound, broken = _bind(d, step, choice, scope, failed or action is not None)
    if broken is not None and action is None:  # as if the step had failed by itself, and no arc takes that
        choice.broken, choice.taken = broken, []
        action, scope = _handle(d, run, known, ending, scope, choice)
        bound, broken = _bind(d, step, choice, scope, failed=True)
    if broken is not None:  # the arc that should have taken the failure is broken too
        action, choice.broken, choice.taken = "halt", broken, []
    evaluated: dict[str, Any] = {"event": name, "arcs": choice.looked, "taken": choice.taken}
    if step.router:
        evaluated["mode"] = step.router.mode
    exception: dict[str, Any] = {} if action is None else {"action": action, "error": choice.broken or ending.error}
    if choice.broken is not None:
        exception["broken"] = True
    unbound = {str(taken.index): taken.unbound for taken in bound if taken.unbound}
    if unbound:
        exception["unbound"] = unbound
    return Routing(bound, evaluated, exception, _letter(d, run, ending) if action in ("halt", "continue") else {})


def _untaken(
    d: DecisionBuilder, run: StepRun, known: StepPlan, ending: Ending, scope: Scope, choice: Choice
) -> tuple[str | None, Scope]:
    step = known.step
    if choice.broken is None and not ending.failed:
        if not step.arcs or d.plan.setting("no_next_is_error", step, False) is not True:
            return None, scope
        message = f"no arc of step `{step.name}` matches, and `no_next_is_error` makes that a failure"
        choice.broken = failure("unknown", message, "NO_NEXT")
    return _handle(d, run, known, ending, scope, choice)


def _handle(
    d: DecisionBuilder, run: StepRun, known: StepPlan, ending: Ending, scope: Scope, choice: Choice
) -> tuple[str, Scope]:
    step = known.step
    policy = str(d.plan.setting("on_step_fail", step, "halt"))
    if policy.startswith("route_edge:"):
        label = policy.removeprefix("route_edge:").strip()
        for index, arc in known.arcs:
            if arc.label == label:
                choice.taken = [index]
                choice.looked.append({"arc": index, "step": arc.step, "matched": True, "by": policy})
                return "route_edge", scope
    if policy == "continue":
        if choice.broken is None:
            scope = _scope(d, run, step, ending, "step.done", status="error")
            again = _choose(d, known, scope, takes_bare=True)
            choice.looked += [{**looked, "again": True} for looked in again.looked]
            choice.taken = again.taken
        return "continue", scope
    return "halt", scope


def _choose(d: DecisionBuilder, known: StepPlan, scope: Scope, takes_bare: bool) -> Choice:
    """Evaluate the arcs in order; in exclusive mode the first match ends it."""
    choice, step = Choice(), known.step
    router = step.router
    for index, arc in known.arcs:
        looked: dict[str, Any] = {"arc": index, "step": arc.step}
        if arc.when is None:
            looked["matched"] = takes_bare
        else:
            verdict = test(arc.when.data, scope, d.calls, known.when_limit)
            looked |= {"when": arc.when.data, "matched": verdict.holds, "read": verdict.read}
            if verdict.error is not None:
                looked["error"] = verdict.error
                message = f"the condition of the arc from `{step.name}` to `{arc.step}` cannot be evaluated"
                policy = _on_when_error(d, step, arc)
                if policy == "fail_step":
                    choice.broken = failure("template", f"{message}: {verdict.error}")
                elif policy is None:
                    choice.doubt = choice.doubt or failure(
                        "template", f"{message}, and no arc is taken: {verdict.error}"
                    )
        choice.looked.append(looked)
        if choice.broken is not None:
            choice.taken = []
            break
        if looked["matched"]:
            choice.taken.append(index)
            if router is None or router.mode == "exclusive":
                break
    if takes_bare and not choice.taken and choice.broken is None:
        choice.broken = choice.doubt  # a branch must not end on a mistake
    return choice


def _on_when_error(d: DecisionBuilder, step: Step, arc: Arc) -> Any:
    own = arc.spec.get("on_when_error") or (step.router.spec.get("on_when_error") if step.router else None)
    return own.data if own is not None else d.plan.setting("on_when_error", step)


def _bind(
    d: DecisionBuilder, step: Step, choice: Choice, scope: Scope, failed: bool
) -> tuple[list[Taken], Error | None]:
    """Evaluate `args` and `set` of the taken arcs, all over the same state."""
    bound: list[Taken] = []
    for index in choice.taken:
        arc = step.arcs[index]
        taken = Taken(index, arc.step, {})
        for key, value in arc.args.items():
            try:
                bound_value = render(value.data, scope, d.calls)
                is_bound = first_undefined(bound_value) is None
                if is_bound:
                    taken.args[key] = plain(bound_value)
            except TemplateError as error:
                message = f"`args.{key}` of the arc from `{step.name}` to `{arc.step}` cannot be evaluated"
                return [], failure(kind_of(error), f"{message}: {error.message}")
            if not is_bound:
                taken.unbound.append(key)  # undefined in the next step, which may have a default
        if arc.sets:
            values, taken.skipped, broken = _evaluate_set(d, step, arc.sets, scope, failed)
            if broken is not None:
                return [], broken
            taken.writes = values["ctx"]
        bound.append(taken)
    return bound, None


def _send(d: DecisionBuilder, run: StepRun, name: str, routing: Routing) -> None:
    bound, payload, exception = routing.bound, routing.evaluated, routing.exception
    fork = None
    if len(bound) > 1:
        fork = f"f{d.state.numbers.get('fork', 0) + 1}"
        payload = {**payload, "fork": fork}
    if exception:
        payload = payload | exception | routing.letter
    event = d.emit("next.evaluated", run.step, payload, run)
    if routing.letter:
        d.update_letter(event)
    lineage = dict(run.lineage)  # a copy: the fold drops forks from it as tokens are sent
    for taken in bound:
        if taken.writes or taken.skipped:
            patch(d, taken.writes, f"{run.run_id}→{taken.step}", taken.skipped)
    for branch, taken in enumerate(bound):
        send_token(d, taken.step, taken.args, lineage, run, name, fork, branch)
    if exception.get("action") == "halt":
        d.halt()


def send_token(
    d: DecisionBuilder,
    target: str,
    args: Mapping[str, Any],
    lineage: Mapping[str, frozenset[int]],
    run: StepRun | None = None,
    name: str = "workflow.started",
    fork: str | None = None,
    branch: int = 0,
) -> None:
    """Send a token to a step; the final step absorbs it."""
    carried = {**lineage, fork: frozenset({branch})} if fork else lineage
    token_id = f"t{d.state.numbers.get('token', 0) + 1}"
    payload: dict[str, Any] = {"step": target, "args": args, "lineage": _kept(d, carried, target) if carried else {}}
    if fork:
        payload["fork"] = fork
    payload["event"] = {"name": name} if run is None else {"name": name, "step": run.step}
    d.emit("token.created", token_id, payload, run)
    if target == d.plan.final:
        d.emit("token.absorbed", token_id, {"step": target, "reason": "the final step runs once, at the end"})


def _kept(d: DecisionBuilder, lineage: Mapping[str, frozenset[int]], target: str) -> dict[str, list[int]]:
    """Return the forks that a token keeps; it drops those of its target's router."""
    forks = d.state.forks
    return {
        fork_id: sorted(branches)
        for fork_id, branches in lineage.items()
        if fork_id in forks and forks[fork_id].router != target
    }
