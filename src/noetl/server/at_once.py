"""Decides and commits one report before anything else happens, where nothing has to be waited for.

A report that would be a batch by itself need not wait for a turn of the sequencer, and whoever sent it need not wait for
an answer. Everything that can go wrong goes the usual way: here it gives nothing. Tested in
tests/unit/server/test_at_once.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from noetl.engine.decide import Needs, decide
from noetl.model.messages import Report
from noetl.model.work import Lease, WorkItem
from noetl.ports import Claim, Clock, Commit, QuickLog
from noetl.server.handed import Handed
from noetl.server.inbox import Ask, Inbox, fits
from noetl.server.plans import Plans
from noetl.server.states import States

Takes = tuple[tuple[str, ...], tuple[str, ...]]  # what a worker takes: pools, tags


class Done(Struct, frozen=True):
    """What was committed, who that waits was served with it, and what everybody was given, the reporter first."""

    commit: Commit
    asks: Sequence[Ask]
    leases: tuple[tuple[Lease, ...], ...]
    now: int


class AtOnce:
    """Takes single reports over a log that is quick."""

    def __init__(
        self, log: QuickLog, states: States, plans: Plans, inbox: Inbox, handed: Handed, clock: Clock, lease_ms: int
    ) -> None:
        self._log = log
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
        if state is None or plan is None:
            return None
        now = self._clock.now()
        commit: Commit | None = None
        asks: Sequence[Ask] = ()
        claims: tuple[Claim, ...] = ()
        if want > 0:
            claims = (Claim(report.worker, takes[0], want, now, now + self._lease_ms, takes[1]),)

        def make() -> tuple[Commit, Sequence[Claim]] | None:
            nonlocal commit, asks, claims
            self.in_vain = True  # until it is applied
            made = decide(plan, state, report, now)
            if isinstance(made, Needs):
                return None
            commit = made  # nothing of the inbox is consumed by a report, and it is nobody's act
            if made.work and self._inbox.waiting and not _takes_all(claims, made.work):
                asks = self._inbox.beside(claims, made.work, now)
                claims = (*claims, *claims_of(asks, now, self._lease_ms))
            return commit, claims

        try:
            receipt = self._log.commit_at_once(make)
            if receipt is not None and commit is not None:
                if receipt.commits[0].status == "applied":
                    self.in_vain = False
                    return Done(commit, asks, receipt.leases, now)
                # somebody else was first; those who asked have been served all the same
                self._handed.give_back([lease for found in receipt.leases for lease in found])
        except Exception:  # noqa: BLE001  it is told when it happens again; what was written is found in the store
            self._handed.doubt(claims)
        if self.in_vain:
            self._states.drop(execution_id)
        return None


def _takes_all(claims: Sequence[Claim], work: Sequence[WorkItem]) -> bool:
    """Tell whether the reporter takes all the new work: mostly there is one piece, and it is for it."""
    return len(work) == 1 and bool(claims) and fits(claims[0], work[0].pool, work[0].requires)


def claims_of(asks: Sequence[Ask], now: int, lease_ms: int) -> list[Claim]:
    """Give what those who ask for work ask of the queue."""
    return [Claim(ask.worker, ask.pools, ask.most, now, now + lease_ms, ask.tags) for ask in asks]
