"""Decide a message only to know the answers of its templates.

A pure function: the sequencer calls it in a process of its own. Tested in tests/server/test_heavy_decisions.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from noetl.dsl.tree.pin import unpinned
from noetl.engine.decision.evaluations import Answer, Evaluations
from noetl.engine.handlers.decide import NeedsLoad, decide
from noetl.engine.plan.plan import plan
from noetl.engine.state.execution import Execution
from noetl.model.messages import AnyMessage


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The templates of a decision with their answers, or what it needs before."""

    answers: list[Answer]
    needs: NeedsLoad | None = None


def evaluate_decision(
    playbook: tuple[str, bytes, Mapping[str, Any]],
    state: Execution,
    message: AnyMessage,
    at: int,
    resolved: Mapping[str, Any],
) -> Evaluated:
    """Decide a message on a state; return the answers of its templates."""
    content_hash, canonical, defaults = playbook
    evaluations = Evaluations(keeps=True)
    made = decide(plan(unpinned(canonical), content_hash, defaults), state, message, at, resolved, evaluations)
    return Evaluated(evaluations.answers, made if isinstance(made, NeedsLoad) else None)


EVALUATE: Final = f"{__name__}:{evaluate_decision.__name__}"
