"""Begins step-runs: timers, the list of a loop, and steps without a tool, which end on the server at once.

Tested in tests/unit/engine/test_decide.py and test_ending.py.
"""

from __future__ import annotations

from noetl.engine import loops
from noetl.engine.decision import Deciding
from noetl.engine.names import Scope, number
from noetl.engine.route import Ending, end
from noetl.engine.state import StepRun


def begin(d: Deciding, run: StepRun) -> None:
    """Begin a run that was just scheduled."""
    step = d.plan.step(run.step)
    if not step.tasks:
        end(d, run, Ending("ok"))
        return
    seconds = step_timeout(d, run)
    if seconds is not None:
        d.set_timer(f"step:{run.run_id}", "step", d.at + round(seconds * 1000), run)
    if step.loop is not None:
        loops.begin(d, run)


def step_timeout(d: Deciding, run: StepRun) -> float | None:
    """Give how long a run may take: the shortest that its step names, in seconds from its scheduling."""
    step = d.plan.step(run.step)
    given = [step.spec["timeout_s"].data] if "timeout_s" in step.spec else []
    given += [d.plan.policy(step, "lifecycle", name) for name in ("timeout_s", "deadline_s")]
    return min(
        (found for value in given if (found := number(value, Scope(d.state, run.args), d.calls)) is not None),
        default=None,
    )
