"""What is done after a commit: what it sends is taken in, whoever waits is answered, and new work is handed out.

Nothing here is done before a commit is durable. Tested in tests/unit/server/test_sequencer.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from noetl.engine.decision import projection
from noetl.model.errors import StoreUnavailable
from noetl.model.work import Lease
from noetl.ports import Claim, Clock, Commit, Committed, Receipt
from noetl.server.at_once import Done
from noetl.server.commits import Batch, answer_of
from noetl.server.handed import Handed
from noetl.server.inbox import Answer, Ask, Entry, Inbox, Told
from noetl.server.listeners import Listeners
from noetl.server.refusals import Refusals
from noetl.server.room import Room
from noetl.server.states import States

_log = logging.getLogger(__name__)
_NO_ROW: Final[Mapping[str, Any]] = {}


class Settling:
    """Settles batches that were written."""

    def __init__(
        self,
        inbox: Inbox,
        room: Room[Entry],
        states: States,
        handed: Handed,
        listeners: Listeners,
        refusals: Refusals,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._inbox = inbox
        self._room = room
        self._states = states
        self._handed = handed
        self._listeners = listeners
        self._refusals = refusals
        self._clock = clock
        self._wake = wake

    async def settle(self, batch: Batch, asks: Sequence[Ask], receipt: Receipt) -> None:
        """Settle a batch: verdicts and leases are in the order of its messages, and then of those who ask."""
        given, again = iter(receipt.leases), list[Entry]()
        applied: list[Commit] = []
        unread: list[tuple[Entry, Committed]] = []  # whose row has to be made of the state
        for entry, commit, verdict in zip(batch.entries, batch.commits, receipt.commits, strict=True):
            if entry.want:
                self._serve(entry, next(given))
            if verdict.status == "applied":
                self.take_in(commit)
                applied.append(commit)
            elif (
                verdict.status == "duplicate"
            ):  # a commit of unknown outcome had applied it, and nobody was told of that
                self._inbox.dry.clear()
                self._states.drop(commit.execution_id)
                self._listeners.tell_unknown(commit.execution_id, self._clock.now())
            else:
                self._inbox.dry.clear()  # others write to the same store
                self._states.drop(commit.execution_id)
                entry.refused, entry.late = True, entry.late or verdict.status == "fenced"
                again.append(entry)
                continue
            if entry.takes is not None:
                self._tell_worker(entry, verdict)
            elif entry.answer is None:
                self._inbox.sent.discard(entry.message.message_id)
            elif entry.answer.done():
                continue
            elif commit.projection:
                entry.answer.set_result(answer_of(commit.projection, verdict, entry.late))
            else:
                unread.append((entry, verdict))
        if again:
            self._inbox.again(again)
        self.hand_out(asks, batch.claims, receipt.leases, batch.commits, batch.now)
        if applied:
            self._listeners.tell_soon(applied)
        for entry, verdict in unread:
            await self._tell_row(entry, verdict)
        await self._save(receipt.commits)

    def take_in(self, commit: Commit) -> None:
        """Take in what a commit that was applied sends, and note what it took out of the queue."""
        if commit.inbox:
            for other, message in commit.inbox:
                self._inbox.own(other, message)
            self._wake()
        self._handed.applied(commit)
        if commit.letters:
            self._refusals.forget()

    def note(self, commit: Commit) -> None:
        """Take in a commit that was applied, and tell those who listen."""
        self.take_in(commit)
        self._listeners.tell(commit)

    def given(self, entry: Entry, done: Done) -> list[Lease]:
        """Note what a reporter was given with a commit of its own, and hand out what is for others."""
        given, work = list(done.leases[0]) if done.wants else [], done.commit.work
        if given:
            self._handed.gave(given, entry.message.message_id)
        is_all = not work or (len(work) == 1 and bool(given) and given[0].work.work_id == work[0].work_id)
        if done.asks or (not is_all and (self._inbox.waiting or self._inbox.dry)):
            self.hand_out(done.asks, done.claims, done.leases, (done.commit,), done.now)
        return given

    def _serve(self, entry: Entry, found: Sequence[Lease]) -> None:
        """Note what a worker is given with its report; whoever went away while the batch was written is given nothing."""
        entry.want = 0
        if found and entry.answer is not None and entry.answer.done():
            self._handed.give_back(found)
        elif found:
            entry.leases = list(found)
            self._handed.gave(entry.leases)

    def _tell_worker(self, entry: Entry, verdict: Committed) -> None:
        status, leases = "late" if entry.late else verdict.status, entry.leases
        if entry.told is not None and status != "applied":
            self._refusals.send_back(entry)
            return
        if status == "duplicate":
            leases = [*self._handed.with_report(entry.message.message_id), *leases]
        elif leases:
            self._handed.remember(entry.message.message_id, leases)
        if entry.told is not None:
            self._room.leave(entry)
            self._call(entry, entry.told, leases)
        elif entry.answer is not None and not entry.answer.done():
            entry.answer.set_result(Answer(_NO_ROW, status, leases))

    def _call(self, entry: Entry, told: Told, leases: list[Lease]) -> None:
        try:
            told(leases)
        except Exception:  # noqa: BLE001  what is committed stands, and one that cannot be told ends nothing
            _log.exception("nobody can be told of a report of execution %s", entry.execution_id)

    async def _tell_row(self, entry: Entry, verdict: Committed) -> None:
        assert entry.answer is not None
        try:
            row = projection(await self._states.get(entry.execution_id))
            if not entry.answer.done():  # whoever asked may have gone away meanwhile
                entry.answer.set_result(answer_of(row, verdict, entry.late))
        except StoreUnavailable as error:  # it is applied; sent again, it is a duplicate
            self._refusals.tell(entry, error)

    async def _save(self, verdicts: Iterable[Committed]) -> None:
        """Save the snapshots that are due."""
        least = self._states.every
        for verdict in verdicts:
            if verdict.last_seq >= least and verdict.status == "applied":
                await self._states.committed(verdict.execution_id, verdict.last_seq)

    def hand_out(
        self,
        asks: Sequence[Ask],
        claims: Sequence[Claim],
        leases: Sequence[Sequence[Lease]],
        commits: Sequence[Commit],
        now: int,
    ) -> None:
        """Answer those who asked; where new work is left for one who waits, the queue is looked into again."""
        inbox = self._inbox
        if asks:
            found = leases[len(leases) - len(asks) :]
            self._handed.answer(asks, found)
            inbox.answered(asks, claims[len(claims) - len(asks) :], found)
        if inbox.waiting or inbox.dry:
            taken = {lease.work.work_id for given in leases for lease in given}
            inbox.left_over(
                item
                for commit in commits
                for item in commit.work
                if item.available_at <= now and item.work_id not in taken
            )
            if inbox.look:
                self._wake()
