"""Compare all derived tables with the log, and rebuild them from it.

One log is folded at a time, so memory is bounded by the largest execution. Stop servers and workers first: all work is
queued again, and reports on older leases are late. Tested in tests/unit/server/background/test_rebuild.py and, after every commit of
every scenario, in tests/scenarios/test_derived.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import msgspec

from noetl.engine.decision.builder import projection
from noetl.engine.queries import projections
from noetl.engine.routing import loop_results
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution
from noetl.engine.state.lineage import left_alone
from noetl.model.errors import Foreign
from noetl.model.events import SCHEMA_VERSION
from noetl.model.letters import OPEN, DeadLetter
from noetl.model.messages import AnyMessage, Cancel, ChildEnded, Collect, Start
from noetl.model.work import WorkItem
from noetl.ports import DerivedRows, DerivedTables, EventLog
from noetl.server.cache.plan_cache import PlanCache

_PAGE = 500


class Rebuild:
    """Rebuild the derived tables of a store."""

    def __init__(self, log: EventLog, derived: DerivedTables, plans: PlanCache) -> None:
        self._log = log
        self._derived = derived
        self._plans = plans
        self._children: dict[str, dict[str, bool]] = {}  # parent → child → whether the child is to compensate

    async def rebuild(self) -> int:
        """Empty the tables and fill them from the log; return the number of executions."""
        epoch = 0
        async for execution_id in self._logged():  # everything must be readable before anything is removed
            epoch = max(epoch, (await self._folded(execution_id))[1].epoch)
        await self._derived.empty(epoch)
        self._children.clear()
        count = 0
        async for execution_id in self._logged():
            await self._derived.put_rows([await self.derived(execution_id)])
            count += 1
        return count

    async def check(self) -> list[str]:
        """Return a sentence for every difference between tables and log."""
        self._children.clear()
        return [text async for execution_id in self._logged() for text in await self.differences(execution_id)]

    async def differences(self, execution_id: str) -> list[str]:
        """Return a sentence for every difference of one execution."""
        derived, there = await self.derived(execution_id), await self._derived.rows(execution_id)
        found = []
        if derived.last_seq != there.last_seq:
            found.append(f"the row ends at event {there.last_seq}, the log at {derived.last_seq}")
        elif _plain(derived.projection) != _plain(there.projection):
            found.append(f"the row (status {there.projection.get('status')}) differs from the log")
        mine, theirs = dict(map(_lasting, derived.work)), dict(map(_lasting, there.work))
        for name, right, wrong in (
            ("work", mine.keys(), theirs.keys()),
            ("timers", set(derived.timers), set(there.timers)),
        ):
            if right != wrong:
                found.append(f"{name}: missing {sorted(right - wrong)}, unexpected {sorted(wrong - right)}")
        changed = sorted(work_id for work_id in mine.keys() & theirs.keys() if mine[work_id] != theirs[work_id])
        found += [f"work {work_id} differs from what was scheduled" for work_id in changed]
        expected, actual = _open(derived.letters), _open(await self._derived.letters_of(execution_id))
        if expected != actual:
            names = sorted(name for name in expected.keys() | actual.keys() if expected.get(name) != actual.get(name))
            found.append(f"dead letters {names} differ from the log")
        for to, message in derived.inbox:
            if not await self._under_way(execution_id, to, message):
                found.append(f"message {type(message).__name__} for execution {to} is missing")
        return [f"execution {execution_id}: {text}" for text in found]

    async def derived(self, execution_id: str) -> DerivedRows:
        """Return the rows derived from the logs of an execution and its family."""
        state, recorded = await self._folded(execution_id)
        self._children[execution_id] = _awaited(state)
        inbox: list[tuple[str, AnyMessage]] = []
        work: tuple[Any, ...] = ()
        if state.phase != "ended" or state.replays:
            plan = await self._plans.get(state.playbook)
            work = tuple(projections.work(plan, state, recorded))
            unborn = [child for child in state.children if not await self._log.read(child, 0, 1)]
            inbox += projections.starts(plan, state, recorded, unborn)
            inbox += projections.never_born(state, [child for child in unborn if not await self._is_sent(child)])
            inbox += [(execution_id, message) for message in loop_results.unsaid(state)]
        inbox += await self._family(state)
        letters = tuple(recorded.letters[name] for name in sorted(recorded.letters))
        return DerivedRows(
            execution_id, state.seq, projection(state), work, projections.timers(state), tuple(inbox), letters=letters
        )

    async def _family(self, state: Execution) -> list[tuple[str, AnyMessage]]:
        """Return the messages between an execution and a parent that has a log."""
        parent = None if state.parent is None else str(state.parent.get("execution_id"))
        if parent is None:
            return []
        if parent not in self._children:
            above, _ = await self._folded(parent)
            if not above.seq:
                return []
            self._children[parent] = _awaited(above)
        undo = self._children[parent].get(state.execution_id)
        word = projections.word_to_parent(state)
        if word is not None:
            return [] if undo is None else [word]
        end = None if undo is False else projections.end_of_orphan(state, undo=undo is True)
        return [] if end is None else [(state.execution_id, end)]

    async def _is_sent(self, child: str) -> bool:
        return any(isinstance(found, Start) for _, found in (await self._derived.rows(child)).inbox)

    async def _under_way(self, sender: str, to: str, message: AnyMessage) -> bool:
        there = [found for _, found in (await self._derived.rows(to)).inbox]
        if isinstance(message, ChildEnded):
            return any(isinstance(found, ChildEnded) and found.child_id == message.child_id for found in there)
        if isinstance(message, Start):  # or it could not be started, and its parent has a message about that
            replies = [found for _, found in (await self._derived.rows(sender)).inbox]
            return any(isinstance(found, Start) for found in there) or any(
                isinstance(found, ChildEnded) and found.child_id == to for found in replies
            )
        if isinstance(message, Collect):
            return any(found.message_id == message.message_id for found in there)
        return any(isinstance(found, Cancel) for found in there)

    async def _folded(self, execution_id: str) -> tuple[Execution, projections.Recorded]:
        state, recorded = Execution(execution_id), projections.Recorded()
        while events := await self._log.read(execution_id, state.seq, _PAGE):
            if max(event.version for event in events) > SCHEMA_VERSION:
                raise Foreign(
                    f"Execution {execution_id} holds events of a newer version of NoETL. Rebuild with that version."
                )
            recorded.note(events)
            fold(execution_id, events, state)
        return state, recorded

    async def _logged(self) -> AsyncIterator[str]:
        after = 0
        while page := await self._derived.logged(after, _PAGE):
            for after, execution_id in page:  # noqa: B007  the last one is where the next page begins
                yield execution_id


def _awaited(state: Execution) -> dict[str, bool]:
    alone = left_alone(state)
    return {child: child in alone for child in state.children}


def _open(letters: Iterable[DeadLetter]) -> dict[str, Any]:
    """Return open letters; closed ones may have been pruned."""
    return {letter.message_id: _plain(msgspec.structs.asdict(letter)) for letter in letters if letter.status in OPEN}


def _lasting(row: tuple[int, WorkItem]) -> tuple[str, WorkItem]:
    """Return what stays of a work item while a worker progresses, read back."""
    item = msgspec.structs.replace(row[1], chunk=None, resume=None)
    return item.work_id, msgspec.json.decode(msgspec.json.encode(item), type=WorkItem)


def _plain(row: Mapping[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(row))
