"""Decide one message. Tested in tests/unit/server/sequencer/test_sequencer.py."""

from __future__ import annotations

from msgspec.structs import replace

from noetl.engine.decision.evaluations import Evaluations
from noetl.engine.handlers.decide import NeedsLoad, decide, late
from noetl.engine.plan.plan import Plan
from noetl.engine.state.execution import Execution
from noetl.expr.runtime.running import RUNNING
from noetl.model.errors import InvalidInput, UnknownExecution
from noetl.model.messages import AnyMessage, Report, Start
from noetl.ports import Commit, EventLog
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.cache.state_cache import StateCache
from noetl.server.sequencer.commits import commit_of, refuse_child, refuse_taken_id
from noetl.server.sequencer.inbox import Entry


def decide_cached(
    entry: Entry, states: StateCache, plans: PlanCache, now: int, quick: int | None
) -> Commit | NeedsLoad | None:
    """Decide a message from the caches; None if it needs a load or a check first."""
    if entry.refused or entry.trouble is not None:
        return None
    message, state = entry.message, states.known(entry.execution_id)
    if isinstance(message, Start):
        plan = plans.cached(message.playbook) if state is None else None
        if plan is None:
            return None
        state = states.new(entry.execution_id)
    else:
        plan = plans.cached(state.playbook) if state is not None else None
        if state is None or plan is None:
            return None
    return _decide(entry, plan, state, message, now, quick)


async def decide_loading(
    entry: Entry, log: EventLog, states: StateCache, plans: PlanCache, now: int, quick: int | None
) -> Commit | NeedsLoad:
    """Load what the decision needs, and decide."""
    message = entry.message
    if entry.trouble is not None:
        raise entry.trouble
    state = await states.get(entry.execution_id, new=isinstance(message, Start) and not entry.refused)
    if isinstance(message, Start) and not message.playbook:
        try:
            message = replace(message, playbook=await plans.named(message))
        except InvalidInput as problem:
            return refuse_child(entry, message, problem, state.seq)
    if isinstance(message, Start) and (refusal := await refuse_taken_id(log, entry, message, state)) is not None:
        return refusal
    if not state.seq and not isinstance(message, Start):
        if entry.is_own:  # sent to an execution that never was
            return Commit(entry.execution_id, 0, (), consumed=entry.consumed)
        raise UnknownExecution(f"there is no execution {entry.execution_id} in this store")
    plan = await plans.get(message.playbook if isinstance(message, Start) and not state.seq else state.playbook)
    if entry.late and isinstance(message, Report):
        return commit_of(entry, late(plan, state, message, now))
    return _decide(entry, plan, state, message, now, quick)


def _decide(
    entry: Entry, plan: Plan, state: Execution, message: AnyMessage, now: int, quick: int | None
) -> Commit | NeedsLoad:
    """Decide a message, with at most `quick` operations of templates."""
    RUNNING.begin(entry.execution_id)
    evaluations = Evaluations(quick, entry.answers_in(state))
    decision = decide(plan, state, message, now, entry.resolved, evaluations)
    return decision if isinstance(decision, NeedsLoad) else commit_of(entry, decision)
