"""A moment of an execution: what a screen shows of it after one event.

Computed from a state alone, so it is the measure of a track. Tested in tests/unit/engine/queries/test_track.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from noetl.engine.decision.builder import status_of
from noetl.engine.plan.plan import Plan
from noetl.engine.routing.join import Meeting, meetings
from noetl.engine.state.dead_letters import letter_id
from noetl.engine.state.execution import Execution, StepRun
from noetl.model.letters import REPLAYED

# Every state of an execution and of a step-run; the first one: a step that was not reached.
STATES: Final = (
    "", "pending", "scheduled", "running", "waiting", "paused", "suspended", "retrying", "done", "completed", "partial",
    "failed", "cancelled", "undone", "repaired", "forced",
)  # fmt: skip


class Moment(Struct, frozen=True):
    """An execution after one event: its status, steps, tokens, joins and loops."""

    status: str
    steps: Mapping[str, str]  # step → state of its last step-run
    tokens: Mapping[str, int]  # step → tokens that stand there
    joins: Mapping[str, tuple[int, int]]  # step → arrived, needed
    ended: Mapping[str, int]  # running loop → its ended items
    failed: Mapping[str, int]  # running loop, or one that ended with failed items → its failed items


def project(plan: Plan | None, state: Execution) -> Moment:
    """Return the moment of a state; without a plan, no join waits."""
    tokens: dict[str, int] = {}
    for token in state.tokens.values():
        tokens[token.step] = tokens.get(token.step, 0) + 1
    names = (name.removeprefix("run:") for name in state.numbers if name.startswith("run:"))
    loops = {run.run_id: run.loop for run in state.runs.values() if run.loop is not None}
    return Moment(
        status=status_of(state),
        steps={name: step_state(state, name) for name in names},
        tokens=tokens,
        joins=waiting_joins(plan, state),
        ended={run_id: loop.ended for run_id, loop in loops.items()},
        failed={**state.partial, **{run_id: loop.failed for run_id, loop in loops.items()}},
    )


def step_state(state: Execution, step: str) -> str:
    """Return the state of a step's last step-run; empty if it has none."""
    number = state.numbers.get(f"run:{step}")
    if number is None:
        return ""
    run_id = f"{step}#{number}"
    run = state.runs.get(run_id)
    if run is not None and run.phase != "routing":
        return run_state(run)
    return outcome(state, step, run_id) or _compensated(state, step)


def run_state(run: StepRun) -> str:
    """Return the state of a step-run that has not ended."""
    loop = run.loop
    if loop is not None and loop.suspended and not loop.pieces:
        return "suspended"
    if run.phase == "suspended":
        return "retrying" if run.suspended is not None and run.suspended.cause == "delay" else "suspended"
    return "running" if run.phase == "started" else "scheduled"


def outcome(state: Execution, step: str, run_id: str) -> str:
    """Return how a step-run ended; empty if the state does not keep its end."""
    ended = state.ended.get(step)
    if ended is None or ended.run_id != run_id:
        return ""
    if ended.status == "error":
        return "cancelled" if ended.error is not None and ended.error.get("kind") == "cancelled" else "failed"
    if state.compensated is not None and any(
        one.run_id == run_id and one.state == "done" for one in reversed(state.completed)
    ):
        return "undone"
    if run_id in state.partial:
        return "partial"
    if state.letters and state.letters.get(letter_id(state.execution_id, run_id, None)) == REPLAYED:
        return "repaired"
    return "done"


def _compensated(state: Execution, step: str) -> str:
    """Return the state of a step that only compensated: whether all it tried is done."""
    tried = [one.state for one in state.completed if one.by == step and one.attempts]
    return "done" if all(one == "done" for one in tried) else "failed"


def waiting_joins(plan: Plan | None, state: Execution) -> dict[str, tuple[int, int]]:
    """Return the joins that wait: how many siblings arrived, and how many it needs.

    A join of all needs those that can still arrive. Of several meetings at a step, the oldest counts.
    """
    waiting: dict[str, tuple[int, int]] = {}
    for meeting in open_meetings(plan, state):
        arrived = meeting.arrived if meeting.needed else len(meeting.tokens)
        waiting.setdefault(meeting.step, (arrived, meeting.needed or arrived + len(meeting.missing)))
    return waiting


def open_meetings(plan: Plan | None, state: Execution) -> list[Meeting]:
    """Return the meetings that wait for siblings, oldest first."""
    if plan is None or not state.forks or not state.tokens:
        return []
    try:
        return [meeting for meeting in meetings(plan, state) if meeting.verdict == "wait"]
    except KeyError:  # the history of a fork with another version: it has steps that the plan lacks
        return []
