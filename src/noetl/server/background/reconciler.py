"""Reconcile running executions with their logs: restore missing rows.

Every running execution has queued or leased work, a timer, an undelivered message, a child, or it waits for a signal. One of
several servers periodically checks some of the running executions: first those without any of these, then the others in
turn. A check compares the tables with the log; a message with an event of its own restores what is missing. The message
applies only if the log has not grown since the check, and tables change only together with the log, so rows in transit are
never taken for lost.

It repairs no other damage: `noetl admin rebuild` does. Tested in tests/conformance/test_reconciler.py.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from noetl.engine.decision.work import piece_of, work_id
from noetl.engine.handlers.decide import NeedsLoad, decide
from noetl.engine.plan.plan import Plan
from noetl.engine.queries import projections
from noetl.engine.routing import loop_results
from noetl.engine.state.execution import Execution, dump, load
from noetl.engine.state.lineage import left_alone
from noetl.model.errors import NoetlError, StoreUnavailable, log_level
from noetl.model.messages import AnyMessage, Cancel, ChildEnded, LeaseLost, Mend, Start
from noetl.ports import Clock, DerivedRows, DerivedTables, EventLog
from noetl.server.background.rebuild import Rebuild
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.cache.state_cache import StateCache
from noetl.server.sequencer.sequencer import Sequencer

_log = logging.getLogger(__name__)
_DUTY: Final = "liveness"
_PAGE: Final = 1_000  # executions of one scan
_MOST: Final = 50  # of them that are compared with their logs
_MOST_CHILDREN: Final = 100  # children of one execution that are checked
_OLD_ENOUGH_S: Final = 5.0


class Reconciler:
    """Check executions periodically, on one server at a time."""

    def __init__(
        self,
        log: EventLog,
        derived: DerivedTables,
        plans: PlanCache,
        sequencer: Sequencer,
        clock: Clock,
        *,
        holder: str = "",
        every_s: float = 10.0,
        old_enough_s: float = _OLD_ENOUGH_S,
    ) -> None:
        self._log = log
        self._derived = derived
        self._plans = plans
        self._sequencer = sequencer
        self._clock = clock
        self._holder = holder
        self._every_s = every_s
        self._old_enough_s = old_enough_s
        self._states = StateCache(log, most=2 * _MOST)  # not shared with the sequencer, which changes its states
        self._after = 0  # where the next scan begins
        self._turn = 0  # offset among executions that have rows

    async def run(self) -> None:
        """Check periodically until cancelled; do nothing without an interval."""
        while self._every_s > 0:
            try:
                now = self._clock.now()
                if await self._derived.on_duty(_DUTY, self._holder, now, now + round(3_000 * self._every_s)):
                    await self.look()
            except NoetlError as error:
                _log.log(log_level(error), "Executions are reconciled later: %s", error)
            await self._clock.sleep(self._every_s)

    async def look(self) -> list[str]:
        """Check some of the running executions; return those that were repaired."""
        before = self._clock.now() - round(self._old_enough_s * 1000)
        page = await self._derived.open(self._after, before, _PAGE)
        bare = [one for one in page if one.bare]
        rest = [one for one in page if not one.bare]
        room = max(1, _MOST - len(bare))
        start = self._turn % len(rest) if rest else 0
        chosen = [*bare[:_MOST], *(rest[start:] + rest[:start])[:room]]
        if len(bare) > _MOST:  # the next scan checks the rest
            self._after = bare[_MOST - 1].number
        else:
            self._after = page[-1].number if len(page) == _PAGE else 0
        self._turn += room if self._after == 0 else 0  # once around
        return [one.execution_id for one in chosen if await self._try_check(one.execution_id)]

    async def _try_check(self, execution_id: str) -> bool:
        try:
            return await self.check(execution_id)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  written by another version, or a bug: check the others
            _log.log(log_level(error), "Execution %s cannot be reconciled: %s", execution_id, error)
            return False

    async def check(self, execution_id: str) -> bool:
        """Restore the missing rows of an execution; return whether there were any."""
        if not await self._is_suspect(execution_id):
            return False
        mend = await self._missing(execution_id)
        if mend is None:
            return False
        await self._sequencer.submit(execution_id, mend)
        _log.warning("Execution %s had lost rows; they were restored from its log", execution_id)
        return True

    async def _is_suspect(self, execution_id: str) -> bool:
        """Return whether rows may be missing, judged by the state alone, which is cheap."""
        state = await self._state(execution_id)
        family = await self._family(state)
        there = await self._derived.rows(execution_id)
        if there.last_seq != state.seq or _is_over(state):
            return False
        plan = await self._plans.get(state.playbook)
        wanted = set(_work(plan, state)) - {item.work_id for _, item in there.work}
        if wanted or dict(projections.timers(state)).keys() - dict(there.timers).keys() or _undead(there):
            return True
        kinds = {type(message) for _, message in there.inbox}
        if any(message.message_id not in _names(there) for message in loop_results.unsaid(state)):
            return True
        return (family and not kinds & {ChildEnded, Cancel}) or could_move(plan, state)

    async def _state(self, execution_id: str) -> Execution:
        row = await self._log.execution(execution_id)
        state = await self._states.get(execution_id)
        if row is not None and state.seq < row["last_seq"]:
            self._states.drop(execution_id)
            state = await self._states.get(execution_id)
        return state

    async def _family(self, state: Execution) -> bool:
        """Return whether a child is not running, or the parent no longer waits."""
        for child in list(state.children)[:_MOST_CHILDREN]:
            row = await self._log.execution(child)
            if row is None or row.get("ended_at") is not None:
                return True
        parent = None if state.parent is None else str(state.parent.get("execution_id"))
        above = None if parent is None else await self._log.execution(parent)
        if parent is None or above is None or state.cut is not None:
            return False
        if above.get("ended_at") is not None:
            return True
        over = await self._state(parent)
        return state.execution_id not in over.children or state.execution_id in left_alone(over)

    async def _missing(self, execution_id: str) -> Mend | None:
        """Return the missing rows; None if there are none or the log has grown.

        Rows of relatives are read before its own: a message is inserted by the commit that causes it.
        """
        rebuild = Rebuild(self._log, self._derived, self._plans)
        derived = await rebuild.derived(execution_id)
        state = await self._state(execution_id)
        if state.seq != derived.last_seq or _is_over(state):
            return None
        words = [message for to, message in derived.inbox if to == execution_id]
        starts = [pair for pair in derived.inbox if isinstance(pair[1], Start) and not await self._is_sent(*pair)]
        words += [word for child in list(state.children)[:_MOST_CHILDREN] for word in await self._word_of(child)]
        there = await self._derived.rows(execution_id)
        if there.last_seq != derived.last_seq:
            return None
        told = {message.child_id for _, message in there.inbox if isinstance(message, ChildEnded)}
        inbox: list[tuple[str, Any]] = [(to, message) for to, message in starts if to not in told]
        inbox += [(execution_id, word) for word in words if not _is_there(word, there)]
        inbox += [(execution_id, _lost(item)) for item in _undead(there)]
        rows, timers = {item.work_id for _, item in there.work}, dict(there.timers)
        work = tuple(item for _, item in derived.work if item.work_id not in rows)
        missing = tuple((name, at) for name, at in derived.timers if name not in timers)
        plan = await self._plans.get(state.playbook)
        if not (work or missing or inbox or could_move(plan, state)):
            return None
        name = f"mend:{execution_id}:{derived.last_seq}"
        return Mend(name, derived.last_seq, work, missing, tuple(inbox))

    async def _is_sent(self, child: str, _start: AnyMessage) -> bool:
        found = await self._derived.rows(child)
        return found.last_seq > 0 or any(isinstance(message, Start) for _, message in found.inbox)

    async def _word_of(self, child: str) -> list[AnyMessage]:
        row = await self._log.execution(child)
        if row is None or row.get("ended_at") is None:
            return []
        word = projections.word_to_parent(await self._state(child))
        return [] if word is None else [word[1]]


def could_move(plan: Plan, state: Execution) -> bool:
    """Return whether an execution without rows would continue if decided again."""
    if state.phase == "ended" or state.runs or state.timers or state.children or state.paused:
        return False
    made = decide(plan, load(dump(state)), Mend("look", state.seq), state.at)
    return not isinstance(made, NeedsLoad) and len(made.events) > 1


def _is_over(state: Execution) -> bool:
    """Return whether an execution is not started, or ended without a replay."""
    return state.phase == "pending" or (state.phase == "ended" and not state.replays)


def _work(plan: Plan, state: Execution) -> list[str]:
    found: list[str] = []
    if state.is_withheld:
        return found
    for run in state.runs.values():
        if run.phase not in ("scheduled", "started"):
            continue
        if run.loop is not None:
            found += [work_id(state, run, piece) for piece in run.loop.pieces]
        elif plan.is_work(run.step):
            found.append(work_id(state, run))
    found += [work_id(state, run, piece_of(run)) for run in state.replays.values() if run.phase != "suspended"]
    return found


def _undead(there: DerivedRows) -> list[Any]:
    told = {(sent.run_id, sent.chunk) for _, sent in there.inbox if isinstance(sent, LeaseLost)}
    items = [item for _, item in there.work if item.work_id in there.dead]
    return [item for item in items if (item.run_id, item.chunk.chunk_id if item.chunk else None) not in told]


def _lost(item: Any) -> LeaseLost:
    chunk = item.chunk.chunk_id if item.chunk is not None else None
    return LeaseLost(f"derived:lost:{item.work_id}", item.run_id, 0, chunk, exhausted=True)


def _names(there: DerivedRows) -> set[str]:
    return {message.message_id for _, message in there.inbox}


def _is_there(word: AnyMessage, there: DerivedRows) -> bool:
    if isinstance(word, ChildEnded):
        return any(isinstance(found, ChildEnded) and found.child_id == word.child_id for _, found in there.inbox)
    if isinstance(word, Cancel):
        return any(isinstance(found, Cancel) for _, found in there.inbox)
    return word.message_id in _names(there)
