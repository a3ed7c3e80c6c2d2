"""Waits and gates that expect a decision.

A wait expects one if the playbook reads `approved` of its answer. Tested in tests/unit/engine/queries/test_decisions.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from noetl.engine.plan.extract import server_paths
from noetl.engine.plan.plan import Plan, reads_of

APPROVED: Final = "approved"
_OUTCOMES: Final = ("outcome", "output")  # the names of a task's result in its own step


def decision(approved: bool, by: str, comment: str = "") -> dict[str, Any]:
    """Return the data of a signal that decides; its keys are a public interface."""
    return {APPROVED: approved, "by": by, "comment": comment}


def expects_decision(plan: Plan, step: str) -> bool:
    """Return whether a template reads `approved` of what a wait of this step returns."""
    if any(APPROVED in path for path in server_paths(plan.playbook, step)):
        return True
    labels = {task.label for task in plan.step(step).tasks}
    for other in plan.playbook.workflow:
        names = {step, *labels, *_OUTCOMES} if other.name == step else {step}
        if any(path[0] in names and APPROVED in path[1:] for path in plan.steps[other.name].reads):
            return True
    return False


def gate_expects_decision(plan: Plan, step: str, signal: str) -> bool:
    """Return whether the gate of a step reads `approved` of a signal."""
    return signal in gate_decisions(plan, step)


def gate_decisions(plan: Plan, step: str) -> tuple[str, ...]:
    """Return the signals whose `approved` the gate of a step reads."""
    reads = (path for path in _gate_reads(plan, step) if path[1:2] == ("signals",) and APPROVED in path[3:])
    return tuple(dict.fromkeys(str(path[2]) for path in reads))


def _gate_reads(plan: Plan, step: str) -> Iterator[tuple[str | int, ...]]:
    for rule in plan.step(step).admit or ():
        if rule.when is not None:
            yield from reads_of(rule.when.data)
