"""Evaluate the templates of a heavy decision in a process beside the server.

The event loop decides everything else meanwhile. Tested in tests/server/test_heavy_decisions.py.
"""

from __future__ import annotations

from typing import Final

from noetl.engine.decision.needs_load import NeedsLoad
from noetl.engine.state.execution import Execution
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.processes.evaluate import EVALUATE, Evaluated
from noetl.server.processes.side import OutOfMemory, SideProcesses, TimedOut
from noetl.server.sequencer.inbox import Entry

QUICK: Final = 100_000  # operations of templates that one decision may use on the event loop
_DEADLINE_S: Final = 10.0  # several times what a whole budget takes
_MOST_ROUNDS: Final = 20  # of one message: others may change the state while its templates are evaluated


class TooHeavy(Exception):  # noqa: N818 (the name in dead letters)
    """The templates of a decision cannot be evaluated within their bounds."""


class HeavyDecisions:
    """Asks side processes for the answers of templates."""

    def __init__(self, side: SideProcesses, plans: PlanCache) -> None:
        self._side = side
        self._plans = plans

    async def evaluate(self, entry: Entry, state: Execution, template: str, now: int) -> NeedsLoad:
        """Add the answers of its templates to an entry; return what it needs besides.

        Raises TooHeavy, Crashed and StoreUnavailable.
        """
        shown = template if len(template) <= 200 else f"{template[:200]}…"
        if entry.count_round() > _MOST_ROUNDS:
            raise TooHeavy(f"the state changes too often while `{shown}` is evaluated")
        playbook = await self._plans.source(entry.message, state)
        seq = state.seq
        try:
            found: Evaluated = await self._side.run(
                EVALUATE, playbook, state, entry.message, now, entry.resolved, deadline_s=_DEADLINE_S
            )
        except TimedOut:
            raise TooHeavy(f"evaluating `{shown}` takes longer than {_DEADLINE_S:g} s") from None
        except OutOfMemory:
            raise TooHeavy(f"evaluating `{shown}` needs too much memory") from None
        if found.needs is not None:
            return found.needs
        entry.answer(state, seq, found.answers)
        return NeedsLoad()
