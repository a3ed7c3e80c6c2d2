"""Admission: gates decide on tokens, and admitted tokens become step-runs.

A gate that denies a token parks it; the gate is evaluated again when something changed. The run of an admitted step
consumes every token that is parked there. Tested in tests/unit/engine/routing/test_admit.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.engine.decision.builder import DecisionBuilder
from noetl.engine.decision.needs_load import NOTHING
from noetl.engine.decision.scope import EventName, test
from noetl.engine.routing import runs
from noetl.engine.routing.join import Meeting, in_arc_order, merged_lineage
from noetl.engine.routing.route import failure
from noetl.engine.routing.saga import give_up
from noetl.engine.state.execution import Token


def has_room(d: DecisionBuilder) -> bool:
    """Return whether one more step-run may be in flight."""
    bound = d.plan.max_parallel
    return bound is None or len(d.state.runs) < bound


def admit_alone(d: DecisionBuilder, token: Token) -> bool:
    """Admit the only token unless a gate or a join has a say: 6 % fewer opcodes."""
    known = d.plan.steps[token.step]
    if known.step.admit is not None or known.join not in ("all", "each", "any") or token.parked or not has_room(d):
        return False
    schedule(d, token.step, [token])
    return True


def arrive(d: DecisionBuilder, meeting: Meeting) -> None:
    """Admit the tokens of a meeting, or park them; fail an unreachable join."""
    name, tokens = meeting.step, in_arc_order(meeting.tokens)
    if meeting.needed > meeting.arrived:
        message = f"the join of step `{name}` needs {meeting.needed} branches, and only {meeting.arrived} can arrive"
        schedule(d, name, tokens, broken=failure("unknown", message, "JOIN_UNREACHABLE"))
        return
    known = d.plan.steps[name]
    parked = _parked(d, name) if len(d.state.tokens) > len(tokens) else []
    event: Mapping[str, Any] = NOTHING
    if known.step.admit is not None:
        cause = meeting.tokens[-1].event or {}
        event = {**cause, "name": EventName(cause.get("name", ""))}
    if known.join == "each":
        for token in parked:  # in order of arrival
            if has_room(d):
                _admit(d, name, [token], event)
        if parked and not has_room(d):
            return  # retried when there is room
        group = tokens
    else:
        group = [*parked, *tokens]
    if _admit(d, name, group, event):
        return
    for token in tokens:
        d.emit("token.parked", token.token_id, {"step": name})


def retry(d: DecisionBuilder) -> bool:
    """Evaluate the gates of parked tokens again; return whether one was admitted."""
    moved = False
    for step in dict.fromkeys(token.step for token in list(d.state.tokens.values()) if token.parked):
        waiting = _parked(d, step)
        groups = [[token] for token in waiting] if d.plan.step(step).join == "each" else [waiting]
        for group in groups:
            if not has_room(d):
                return moved
            if group and _admit(d, step, group, d.cause):
                moved = True
    return moved


def _admit(d: DecisionBuilder, name: str, tokens: list[Token], event: Mapping[str, Any]) -> bool:
    broken, skips = None, False
    if d.plan.steps[name].step.admit is not None:
        allow, skips, broken = _evaluate_gate(d, name, tokens, event)
        if not allow and broken is None:
            return False
    schedule(d, name, tokens, broken, skips)
    return True


def _evaluate_gate(
    d: DecisionBuilder, name: str, tokens: list[Token], event: Mapping[str, Any]
) -> tuple[bool, bool, Mapping[str, Any] | None]:
    """Return whether tokens are admitted, whether they skip the step, and an error."""
    step = d.plan.step(name)
    args, _ = _merged_args(tokens)
    scope = d.scope(args, event=event)
    read: dict[str, Any] = {}
    allow, skips, matched = False, False, None
    errors: list[str] = []
    broken: Mapping[str, Any] | None = None
    limit = d.plan.setting("evaluate_when_timeout_ms", step)
    for index, rule in enumerate(step.admit or ()):
        verdict = test(True if rule.when is None else rule.when.data, scope, d.calls, limit)
        read |= verdict.read
        if verdict.error is not None:
            errors.append(verdict.error)
            if d.plan.setting("on_when_error", step) == "fail_step":
                message = f"the gate of step `{name}` cannot be evaluated: {verdict.error}"
                broken = failure("template", message)
                break
        if verdict.holds:
            allow, skips, matched = rule.allow, rule.skips, index
            break
    if broken is None and not allow and all(token.parked and token.gate == read for token in tokens):
        return False, False, None  # nothing that it reads has changed since it denied them
    payload: dict[str, Any] = {"allow": allow, "rule": matched, "read": read, "event": str(event.get("name", ""))}
    payload["tokens"] = [token.token_id for token in tokens]
    payload |= {"errors": errors} if errors else {}
    d.emit("policy.admit.evaluated", name, payload, status="skipped" if skips else "allowed" if allow else "denied")
    return allow, skips, broken


def schedule(
    d: DecisionBuilder, name: str, tokens: list[Token], broken: Mapping[str, Any] | None = None, skipped: bool = False
) -> None:
    """Schedule a run that consumes tokens; with `broken` it fails at once."""
    number = d.state.numbers.get(f"run:{name}", 0) + 1
    if number > d.plan.steps[name].max_runs:
        _break_cycle(d, name)
        return
    if len(tokens) == 1 and not tokens[0].lineage:  # nothing to merge
        token = tokens[0]
        payload = {"number": number, "args": token.args, "lineage": {}, "tokens": [token.token_id]}
    else:
        payload = {"number": number, **_merged(tokens, d.plan.step(name).join)}
    runs.schedule(d, name, payload, broken, skipped)


def _break_cycle(d: DecisionBuilder, name: str) -> None:
    most, cycle = d.plan.steps[name].max_runs, " → ".join(d.plan.net.cycle_of(name))
    message = (
        f"step `{name}` has run {most} times, which is the limit `limits.max_step_runs`. The cycle: {cycle}. "
        "Add an arc with a `when` that leaves the cycle, or set a higher limit in `spec.limits` of the step or the executor"
    )
    give_up(d, message, "MAX_STEP_RUNS")


def _merged(tokens: list[Token], join: Any) -> dict[str, Any]:
    args, warnings = _merged_args(tokens)
    lineage = merged_lineage(tokens)
    payload: dict[str, Any] = {
        "args": args,
        "lineage": {fork: sorted(branches) for fork, branches in lineage.items()},
        "tokens": [token.token_id for token in tokens],
    }
    if warnings:
        payload["warnings"] = warnings
    if join not in ("all", "each") and lineage:
        payload["spent"] = sorted(lineage)
    return payload


def _merged_args(tokens: list[Token]) -> tuple[dict[str, Any], list[str]]:
    """Merge the args of tokens; of different values the later wins, with a warning."""
    args: dict[str, Any] = {}
    warnings: list[str] = []
    for token in tokens:
        for key, value in token.args.items():
            if key in args and args[key] != value:
                warnings.append(f"`args.{key}` was bound to two different values; the later arc wins")
            args[key] = value
    return args, warnings


def _parked(d: DecisionBuilder, step: str) -> list[Token]:
    parked = [token for token in d.state.tokens.values() if token.step == step and token.parked]
    return sorted(parked, key=lambda token: token.parked) if len(parked) > 1 else parked
