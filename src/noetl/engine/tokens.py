"""Sends tokens: what they carry, and which forks they remember.

Tested in tests/unit/engine/test_route.py, test_join.py and test_straight.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.engine.decision import Deciding
from noetl.engine.state import StepRun


def token(
    d: Deciding,
    target: str,
    args: Mapping[str, Any],
    lineage: Mapping[str, frozenset[int]],
    run: StepRun | None = None,
    name: str = "workflow.started",
    fork: str | None = None,
    branch: int = 0,
) -> None:
    """Send a token; a final step takes none."""
    carried = {**lineage, fork: frozenset({branch})} if fork else lineage
    token_id = next_token(d)
    payload: dict[str, Any] = {"step": target, "args": args, "lineage": kept(d, carried, target)}
    if fork:
        payload["fork"] = fork
    payload["event"] = {"name": name} if run is None else {"name": name, "step": run.step}
    d.emit("token.created", token_id, payload, run=run)
    if target == d.plan.final:
        d.emit("token.absorbed", token_id, {"step": target, "reason": "the final step runs once, at the end"})


def next_token(d: Deciding) -> str:
    """Name the token that is sent next."""
    return f"t{d.state.numbers.get('token', 0) + 1}"


def kept(d: Deciding, lineage: Mapping[str, frozenset[int]], target: str) -> dict[str, list[int]]:
    """Give what a token remembers: one that comes back to the router of a fork forgets that fork."""
    forks = d.state.forks
    return {
        fork_id: sorted(branches)
        for fork_id, branches in lineage.items()
        if fork_id in forks and forks[fork_id].router != target
    }
