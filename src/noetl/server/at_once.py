"""Decides and commits one message before anything else happens, where nothing has to be waited for.

A message that would be a batch by itself need not wait for a turn of the sequencer, and whoever sent it need not wait for
an answer. Everything that can go wrong goes the usual way: here it gives nothing. Tested in
tests/unit/server/test_at_once.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from noetl.engine.decide import Needs, decide
from noetl.ports import Claim, Clock, Commit, EventLog, QuickLog, Receipt
from noetl.server.commits import commit_of
from noetl.server.handed import Handed
from noetl.server.inbox import Ask, Entry, Inbox
from noetl.server.plans import Plans
from noetl.server.states import States


class Done(Struct, frozen=True):
    """What was committed, whose asking went with it, and what came of it."""

    commit: Commit
    asks: list[Ask]
    receipt: Receipt
    now: int


class AtOnce:
    """Takes single messages over a log that is quick; over another one, none."""

    def __init__(
        self, log: EventLog, states: States, plans: Plans, inbox: Inbox, handed: Handed, clock: Clock, lease_ms: int
    ) -> None:
        self._log = log if isinstance(log, QuickLog) else None
        self._states = states
        self._plans = plans
        self._inbox = inbox
        self._handed = handed
        self._clock = clock
        self._lease_ms = lease_ms

    def take(self, entry: Entry) -> Done | None:
        """Decide and commit a report; None where that cannot be at once. One that was tried in vain is then `refused`."""
        if self._log is None or not self._inbox.idle() or not self._log.is_quick:
            return None
        state = self._states.at_hand(entry.execution_id)
        plan = self._plans.at_hand(state.playbook) if state is not None else None
        if state is None or plan is None:
            return None
        now, before = self._clock.now(), state.seq
        done: list[tuple[Commit, list[Ask]]] = []

        def make() -> tuple[Commit, list[Claim]] | None:
            entry.refused = True  # until it is applied
            made = decide(plan, state, entry.message, now)
            if isinstance(made, Needs):
                return None
            commit = commit_of(entry, before, made)
            asks = self._inbox.served((entry,), commit.work, now)
            done.append((commit, asks))
            return commit, claims_of(asks, now, self._lease_ms)

        try:
            receipt = self._log.commit_at_once(make)
            if receipt is not None and receipt.commits[0].status == "applied":
                entry.refused = False
                return Done(*done[0], receipt, now)
            if receipt is not None:  # somebody else was first; those who asked have been served all the same
                self._handed.give_back([lease for found in receipt.leases for lease in found])
        except Exception:  # noqa: BLE001  it is told when it happens again; what was written is found in the store
            for _, asks in done:
                self._handed.doubt(asks, now + self._lease_ms)
        if entry.refused:
            self._states.drop(entry.execution_id)
        return None


def claims_of(asks: Sequence[Ask], now: int, lease_ms: int) -> list[Claim]:
    """Give what those who ask for work ask of the queue."""
    return [Claim(ask.worker, ask.pools, ask.most, now, now + lease_ms, ask.tags) for ask in asks]
