"""Decides and commits one message before anything else happens, where nothing has to be waited for.

A report or a start that would be a batch by itself need not wait for a turn of the sequencer, and whoever sent it need not
wait for an answer. Everything that can go wrong goes the usual way: here it gives nothing. Tested in
tests/unit/server/test_at_once.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from noetl.engine.decide import Needs, decide
from noetl.engine.plan import Plan
from noetl.engine.state import Execution
from noetl.model.messages import Report, Start
from noetl.model.work import Lease, WorkItem
from noetl.ports import Claim, Clock, Commit, Committed, EventLog, Receipt
from noetl.server.commits import commit_of
from noetl.server.handed import Handed
from noetl.server.inbox import Ask, Entry, Inbox, fits
from noetl.server.plans import Plans
from noetl.server.states import States


class Done(Struct):
    """What a message changes, who asks for work with it, and what everybody was given; the reporter first, if it `wants`."""

    commit: Commit
    now: int
    wants: bool
    claims: Sequence[Claim]
    asks: Sequence[Ask] = ()
    verdict: Committed | None = None
    leases: tuple[tuple[Lease, ...], ...] = ()


class AtOnce:
    """Takes single messages: before anything else happens over a log that is quick, and without ceremony over another."""

    def __init__(
        self, log: EventLog, states: States, plans: Plans, inbox: Inbox, handed: Handed, clock: Clock, lease_ms: int
    ) -> None:
        self._log = log
        self.is_quick = False
        self._states = states
        self._plans = plans
        self._inbox = inbox
        self._handed = handed
        self._clock = clock
        self._lease_ms = lease_ms
        self.in_vain = False  # the last one was decided, and is not known to be applied

    def take(self, entry: Entry) -> Done | None:  # noqa: ARG002  no log commits before anything else happens
        """Decide and commit a message; None where that cannot be at once."""
        return None

    async def take_soon(self, entry: Entry) -> Done | None:
        """Decide and commit a message likewise over a log that has to be waited for."""
        self.in_vain = False
        known = self._known(entry)
        if known is None:
            return None
        done: Done | None = None
        try:
            done = self._decided(*known, entry)
            if done is not None and self._is_applied(done, await self._log.commit([done.commit], done.claims)):
                return done
        except Exception:  # noqa: BLE001  likewise
            self._doubt(done)
        self._undo(entry, done)
        return None

    def _known(self, entry: Entry) -> tuple[Plan, Execution] | None:
        """Give the plan and the state that a message is decided on, where both are in memory."""
        if isinstance(entry.message, Start):
            is_known = self._states.known(entry.execution_id) is not None
            plan = None if is_known else self._plans.at_hand(entry.message.playbook)
            return None if plan is None else (plan, self._states.new(entry.execution_id))
        state = self._states.at_hand(entry.execution_id)
        plan = None if state is None else self._plans.at_hand(state.playbook)
        return None if state is None or plan is None else (plan, state)

    def _decided(self, plan: Plan, state: Execution, entry: Entry) -> Done | None:
        """Decide a message; None where something has to be brought for it."""
        self.in_vain = True  # until it is applied
        message, want, now = entry.message, entry.want, self._clock.now()
        made: Commit | Needs = decide(plan, state, message, now)
        if isinstance(made, Needs):
            return None
        if entry.act is not None:
            made = commit_of(entry, made)
        claims: tuple[Claim, ...] = ()
        inbox, takes = self._inbox, entry.takes
        if takes is not None and inbox.dry.get(takes, 0) > now and not made.work:
            want = 0  # there is nothing
        if want > 0 and takes is not None and isinstance(message, Report):
            pools, tags = takes
            claims = (Claim(message.worker, pools, want, now, now + self._lease_ms, tags),)
        done = Done(made, now, want > 0, claims)  # no message of the inbox is consumed by it
        if inbox.asks:
            done.asks = inbox.served(claims, (made,), now)
        elif made.work and inbox.waiting and not _takes_all(claims, made.work):
            done.asks = inbox.beside(claims, made.work, now)
        if done.asks:
            done.claims = (*claims, *claims_of(done.asks, now, self._lease_ms))
        return done

    def _is_applied(self, done: Done, receipt: Receipt) -> bool:
        verdict = receipt.commits[0]
        if verdict.status == "applied":
            self.in_vain = False
            done.verdict, done.leases = verdict, receipt.leases
            return True
        # Somebody else was first; those who asked have been served all the same.
        self._handed.give_back([lease for found in receipt.leases for lease in found])
        return False

    def _doubt(self, done: Done | None) -> None:
        if done is not None:
            self._handed.doubt(done.claims)

    def _undo(self, entry: Entry, done: Done | None) -> None:
        """Forget a state that may not be what is committed, and let those who ask do so again."""
        self._inbox.dry.clear()  # it may be written
        if self.in_vain or isinstance(entry.message, Start):
            self._states.drop(entry.execution_id)
        if done is not None and done.asks:
            self._inbox.waiting = [ask for ask in self._inbox.waiting if ask not in done.asks]
            self._inbox.asks[:0] = done.asks


def _takes_all(claims: Sequence[Claim], work: Sequence[WorkItem]) -> bool:
    """Tell whether the reporter takes all the new work: mostly there is one piece, and it is for it."""
    return len(work) == 1 and bool(claims) and fits(claims[0], work[0].pool, work[0].requires)


def claims_of(asks: Sequence[Ask], now: int, lease_ms: int) -> list[Claim]:
    """Give what those who ask for work ask of the queue."""
    return [Claim(ask.worker, ask.pools, ask.most, now, now + lease_ms, ask.tags) for ask in asks]
