"""Decides and commits one report before anything else happens, where nothing has to be waited for.

A report that would be a batch by itself need not wait for a turn of the sequencer, and whoever sent it need not wait for
an answer. Everything that can go wrong goes the usual way: here it gives nothing. Tested in
tests/unit/server/test_at_once.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from noetl.engine.decide import Needs, decide
from noetl.engine.plan import Plan
from noetl.engine.state import Execution
from noetl.model.messages import Report
from noetl.model.work import Lease, WorkItem
from noetl.ports import Claim, Clock, Commit, EventLog, QuickLog, Receipt
from noetl.server.handed import Handed
from noetl.server.inbox import Ask, Inbox, Takes, fits
from noetl.server.plans import Plans
from noetl.server.states import States


class Single(Struct, eq=False):
    """A report on its way by itself; `told` is called with the new work, or with None where it has to be submitted."""

    execution_id: str
    report: Report
    want: int
    takes: Takes
    told: Callable[[list[Lease] | None], None]


class Done(Struct):
    """What a report changes, who asks for work with it, and what everybody was given; the reporter first, if it `wants`."""

    commit: Commit
    now: int
    wants: bool
    claims: Sequence[Claim]
    asks: Sequence[Ask] = ()
    leases: tuple[tuple[Lease, ...], ...] = ()


class AtOnce:
    """Takes single reports: before anything else happens over a log that is quick, and without ceremony over another."""

    def __init__(
        self, log: EventLog, states: States, plans: Plans, inbox: Inbox, handed: Handed, clock: Clock, lease_ms: int
    ) -> None:
        self._log = log
        self._quick = log if isinstance(log, QuickLog) else None
        self.is_quick = self._quick is not None
        self._states = states
        self._plans = plans
        self._inbox = inbox
        self._handed = handed
        self._clock = clock
        self._lease_ms = lease_ms
        self.in_vain = False  # the last one was decided, and is not known to be applied

    def take(self, execution_id: str, report: Report, want: int, takes: Takes) -> Done | None:
        """Decide and commit a report; None where that cannot be at once."""
        self.in_vain = False
        state = self._states.at_hand(execution_id)
        plan = self._plans.at_hand(state.playbook) if state is not None else None
        if self._quick is None or state is None or plan is None:
            return None
        done: Done | None = None

        def make() -> tuple[Commit, Sequence[Claim]] | None:
            nonlocal done
            done = self._decided(plan, state, report, want, takes)
            return None if done is None else (done.commit, done.claims)

        try:
            receipt = self._quick.commit_at_once(make)
            if receipt is not None and done is not None and self._is_applied(done, receipt):
                return done
        except Exception:  # noqa: BLE001  it is told when it happens again; what was written is found in the store
            self._doubt(done)
        if self.in_vain:
            self._states.drop(execution_id)
        return None

    async def take_soon(self, single: Single) -> Done | None:
        """Decide and commit a report likewise over a log that has to be waited for."""
        self.in_vain = False
        state = self._states.at_hand(single.execution_id)
        plan = self._plans.at_hand(state.playbook) if state is not None else None
        if state is None or plan is None:
            return None
        done: Done | None = None
        try:
            done = self._decided(plan, state, single.report, single.want, single.takes)
            if done is not None and self._is_applied(done, await self._log.commit([done.commit], done.claims)):
                return done
        except Exception:  # noqa: BLE001  likewise
            self._doubt(done)
        self._states.drop(single.execution_id)
        return None

    def _decided(self, plan: Plan, state: Execution, report: Report, want: int, takes: Takes) -> Done | None:
        """Decide a report; None where something has to be brought for it."""
        self.in_vain = True  # until it is applied
        now = self._clock.now()
        made = decide(plan, state, report, now)
        if isinstance(made, Needs):
            return None
        claims: tuple[Claim, ...] = ()
        if want > 0:
            claims = (Claim(report.worker, takes[0], want, now, now + self._lease_ms, takes[1]),)
        done = Done(made, now, want > 0, claims)  # nothing of the inbox is consumed by it, and it is nobody's act
        if made.work and self._inbox.waiting and not _takes_all(claims, made.work):
            done.asks = self._inbox.beside(claims, made.work, now)
            done.claims = (*claims, *claims_of(done.asks, now, self._lease_ms))
        return done

    def _is_applied(self, done: Done, receipt: Receipt) -> bool:
        if receipt.commits[0].status == "applied":
            self.in_vain = False
            done.leases = receipt.leases
            return True
        # Somebody else was first; those who asked have been served all the same.
        self._handed.give_back([lease for found in receipt.leases for lease in found])
        return False

    def _doubt(self, done: Done | None) -> None:
        if done is not None:
            self._handed.doubt(done.claims)


def _takes_all(claims: Sequence[Claim], work: Sequence[WorkItem]) -> bool:
    """Tell whether the reporter takes all the new work: mostly there is one piece, and it is for it."""
    return len(work) == 1 and bool(claims) and fits(claims[0], work[0].pool, work[0].requires)


def claims_of(asks: Sequence[Ask], now: int, lease_ms: int) -> list[Claim]:
    """Give what those who ask for work ask of the queue."""
    return [Claim(ask.worker, ask.pools, ask.most, now, now + lease_ms, ask.tags) for ask in asks]
