"""Admission: gates decide on tokens, tokens become step-runs.

A token that a gate does not let in is parked and tried again when something changed. When a gated step is admitted, the
run consumes every token that is parked there. Tested in tests/unit/engine/test_admit.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.engine import runs
from noetl.engine.decision import Deciding
from noetl.engine.join import in_arc_order, merged_lineage
from noetl.engine.names import EventName, test, when_budget
from noetl.engine.route import failure
from noetl.engine.state import Token


def has_room(d: Deciding) -> bool:
    """Tell whether one more step-run may be in flight."""
    bound = d.plan.max_parallel
    return bound is None or len(d.state.runs) < bound


def arrive(d: Deciding, step: str, tokens: list[Token], *, count: tuple[int, int] | None = None) -> None:
    """Let joined tokens in, or park them; `count` is (arrived, needed) of a join that can no longer be reached."""
    ordered = in_arc_order(tokens)
    if count is not None:
        message = f"the join of step `{step}` needs {count[1]} branches, and only {count[0]} can arrive"
        schedule(d, step, ordered, broken=failure("unknown", message, "JOIN_UNREACHABLE"))
        return
    cause = tokens[-1].event or {}
    event = {**cause, "name": EventName(cause.get("name", ""))}
    if d.plan.steps[step].join == "each":
        for token in _parked(d, step):  # who came before goes before
            if has_room(d):
                _let_in(d, step, [token], event)
        group = ordered
        if not has_room(d):
            return  # they are looked at again when there is room
    else:
        group = [*_parked(d, step), *ordered]
    if _let_in(d, step, group, event):
        return
    for token in ordered:
        d.emit("token.parked", token.token_id, {"step": step})


def retry(d: Deciding) -> bool:
    """Try parked tokens again; tells whether one was let in."""
    moved = False
    for step in dict.fromkeys(token.step for token in list(d.state.tokens.values()) if token.parked):
        waiting = _parked(d, step)
        groups = [[token] for token in waiting] if d.plan.steps[step].join == "each" else [waiting]
        for group in groups:
            if not has_room(d):
                return moved
            if group and _let_in(d, step, group, d.cause):
                moved = True
    return moved


def _let_in(d: Deciding, name: str, tokens: list[Token], event: Mapping[str, Any]) -> bool:
    """Make a run of tokens that the gate lets in; one whose gate is broken, and says so, fails at once."""
    allow, broken = admitted(d, name, tokens, event)
    if allow or broken is not None:
        schedule(d, name, tokens, broken)
    return allow or broken is not None


def admitted(
    d: Deciding, name: str, tokens: list[Token], event: Mapping[str, Any]
) -> tuple[bool, Mapping[str, Any] | None]:
    """Ask the gate of a step; a step without one lets everything in. Gives the error of a gate that fails its step."""
    step = d.plan.step(name)
    rules = step.admit
    if rules is None:
        return True, None
    args, _ = merged_args(tokens)
    scope = d.scope(args, event=event)
    read: dict[str, Any] = {}
    allow, matched = False, None
    errors: list[str] = []
    broken: Mapping[str, Any] | None = None
    limit = d.plan.setting("evaluate_when_timeout_ms", step)
    for index, rule in enumerate(rules):
        verdict = test(True if rule.when is None else rule.when.data, scope, d.calls, when_budget(limit))
        read |= verdict.read
        if verdict.error is not None:
            errors.append(verdict.error)
            if d.plan.setting("on_when_error", step) == "fail_step":
                message = f"the gate of step `{name}` cannot be evaluated: {verdict.error}"
                broken = failure("template", message)
                break
        if verdict.holds:
            allow, matched = rule.allow, index
            break
    if broken is None and not allow and all(token.parked and token.gate == read for token in tokens):
        return False, None  # nothing that it reads has changed since it last said no
    payload: dict[str, Any] = {"allow": allow, "rule": matched, "read": read, "event": str(event.get("name", ""))}
    payload["tokens"] = [token.token_id for token in tokens]
    payload |= {"errors": errors} if errors else {}
    d.emit("policy.admit.evaluated", name, payload, status="allowed" if allow else "denied")
    return allow, broken


def schedule(d: Deciding, name: str, tokens: list[Token], broken: Mapping[str, Any] | None = None) -> None:
    """Make a run of tokens."""
    number = d.state.numbers.get(f"run:{name}", 0) + 1
    if len(tokens) == 1 and not tokens[0].lineage:  # there is nothing to merge
        [token] = tokens
        payload = {"number": number, "args": token.args, "lineage": {}, "tokens": [token.token_id]}
    else:
        payload = {"number": number, **_merged(tokens, d.plan.steps[name].join)}
    runs.schedule(d, name, payload, broken)


def _merged(tokens: list[Token], join: Any) -> dict[str, Any]:
    args, warnings = merged_args(tokens)
    lineage = merged_lineage(tokens)
    found: dict[str, Any] = {
        "args": args,
        "lineage": {fork: sorted(branches) for fork, branches in lineage.items()},
        "tokens": [token.token_id for token in tokens],
    }
    if warnings:
        found["warnings"] = warnings
    if join not in ("all", "each") and lineage:
        found["spent"] = sorted(lineage)
    return found


def merged_args(tokens: list[Token]) -> tuple[dict[str, Any], list[str]]:
    """Merge what arcs bound; of two different values for one key the later wins, with a warning."""
    args: dict[str, Any] = {}
    warnings: list[str] = []
    for token in tokens:
        for key, value in token.args.items():
            if key in args and args[key] != value:
                warnings.append(f"`args.{key}` was bound to two different values; the later arc wins")
            args[key] = value
    return args, warnings


def _parked(d: Deciding, step: str) -> list[Token]:
    found = [token for token in d.state.tokens.values() if token.step == step and token.parked]
    return sorted(found, key=lambda token: token.parked) if len(found) > 1 else found
