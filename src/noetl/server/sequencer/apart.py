"""Evaluate heavy templates of decisions and starts in processes beside the server.

The event loop decides everything else meanwhile. Tested in tests/server/test_heavy_decisions.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from noetl.engine.decision.needs_load import NeedsLoad
from noetl.model.errors import InvalidInput
from noetl.model.messages import Start
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.cache.state_cache import StateCache
from noetl.server.processes.evaluate import EVALUATE, FIND_MISFIT, Evaluated
from noetl.server.processes.side import OutOfMemory, SideProcesses, TimedOut
from noetl.server.sequencer.inbox import Entry

QUICK: Final = 20_000  # operations of templates that one decision may use on the event loop
_DEADLINE_S: Final = 10.0  # several times what a whole budget takes
_MOST_ROUNDS: Final = 20  # of one message: others may change the state while its templates are evaluated
_AT_ONCE: Final = 2


class TooHeavy(Exception):  # noqa: N818 (the name in dead letters)
    """The templates of a decision cannot be evaluated within their bounds."""

    @property
    def refusal(self) -> InvalidInput:
        """The error for a sender whose message is not kept as a dead letter."""
        return InvalidInput(f"{self}. Simplify the template, or do the work in a `python` task.")


class HeavyTemplates:
    """Asks side processes for the answers of templates."""

    def __init__(self, side: SideProcesses, plans: PlanCache) -> None:
        self._side = side
        self._plans = plans
        self._slots = asyncio.Semaphore(_AT_ONCE)  # few states are kept in memory for it

    async def evaluate(self, entry: Entry, states: StateCache, template: str, now: int) -> NeedsLoad:
        """Add the answers of its templates to an entry; return what it needs besides.

        Raises TooHeavy, Crashed and StoreUnavailable.
        """
        async with self._slots:
            state = await states.get(entry.execution_id, new=isinstance(entry.message, Start))
            with states.pinned(entry.execution_id):
                source = await self._plans.source(entry.message, state)
                seq = state.seq
                order = (source, state, entry.message, now, entry.resolved)
                found: Evaluated = await self._run(template, EVALUATE, *order)
        if found.needs is not None:
            return found.needs
        if entry.count_round() > _MOST_ROUNDS:
            raise TooHeavy(f"the state changes too often while `{_shown(template)}` is evaluated")
        entry.answer(state, seq, found.answers)
        return NeedsLoad()

    async def misfit(
        self, execution_id: str, like: Start, payloads: Sequence[Mapping[str, Any]], template: str, now: int
    ) -> tuple[int, str] | None:
        """Return the index of the first payload that does not fit, and why."""
        source = await self._plans.source(like)
        order = (source, execution_id, like, payloads, now)
        try:
            found: tuple[int, str] | None = await self._run(template, FIND_MISFIT, *order)
        except TooHeavy as error:
            raise error.refusal from None
        return found

    async def _run(self, template: str, function: str, *order: Any) -> Any:
        try:
            return await self._side.run(function, *order, deadline_s=_DEADLINE_S)
        except TimedOut:
            raise TooHeavy(
                f"evaluating `{_shown(template)}` takes more than {_DEADLINE_S:g} s of processor time"
            ) from None
        except OutOfMemory:
            raise TooHeavy(f"evaluating `{_shown(template)}` needs too much memory") from None


def _shown(template: str) -> str:
    return template if len(template) <= 200 else f"{template[:200]}…"
