"""Evaluate the templates of a decision, or of the workloads of starts.

Pure functions: the control plane calls them in processes of their own. Tested in tests/server/test_heavy_decisions.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from noetl.dsl.tree.pin import unpinned
from noetl.engine.decision.evaluations import Answer, Evaluations
from noetl.engine.handlers.decide import NeedsLoad, decide
from noetl.engine.plan.plan import Plan, plan
from noetl.engine.routing.start import misfit
from noetl.engine.state.execution import Execution
from noetl.model.errors import InvalidPayload, NoetlError
from noetl.model.messages import AnyMessage, Start

Source = tuple[str, bytes, Mapping[str, Any]]  # of a plan: content hash, canonical tree, defaults


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The templates of a decision with their answers, or what it needs before."""

    answers: list[Answer]
    needs: NeedsLoad | None = None


def evaluate_decision(
    source: Source, state: Execution, message: AnyMessage, at: int, resolved: Mapping[str, Any]
) -> Evaluated:
    """Decide a message on a state; return the answers of its templates.

    What the decision raises is raised again by the caller's own decision with these answers.
    """
    evaluations, needs = Evaluations(keeps=True), None
    with suppress(NoetlError, RecursionError, OverflowError):
        made = decide(_plan(source), state, message, at, resolved, evaluations)
        needs = made if isinstance(made, NeedsLoad) else None
    return Evaluated(evaluations.answers, needs)


def find_misfit(
    source: Source, execution_id: str, like: Start, payloads: Sequence[Mapping[str, Any]], at: int
) -> tuple[int, str] | None:
    """Return the index of the first payload that does not fit, and why; -1: of all."""
    try:
        found = misfit(_plan(source), execution_id, like, payloads, at)
    except InvalidPayload as problem:
        return -1, str(problem)
    return None if found is None else (found[0], str(found[1]))


def _plan(source: Source) -> Plan:
    playbook, canonical, defaults = source
    return plan(unpinned(canonical), playbook, defaults)


EVALUATE: Final = f"{__name__}:{evaluate_decision.__name__}"
FIND_MISFIT: Final = f"{__name__}:{find_misfit.__name__}"
