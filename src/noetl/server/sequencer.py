"""The only writer of events: drains messages, decides them, commits a whole batch in one transaction, then answers.

While a commit is under way the next batch gathers. Nothing is answered before it is durable, and a cached state is
trusted only after its commit: on a conflict or an error it is dropped and the messages are decided again from the log.
Several sequencers may share a store. Holds no rule of the language. Tested in tests/unit/server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from noetl.engine.decide import Needs
from noetl.engine.state import Execution
from noetl.model.errors import StoreUnavailable
from noetl.model.messages import AnyMessage, Start
from noetl.model.work import Lease
from noetl.ports import Act, Clock, EventLog, WorkQueue
from noetl.server.at_once import AtOnce, claims_of
from noetl.server.commits import Batch, answer_of
from noetl.server.deciding import at_hand, decided
from noetl.server.handed import Handed
from noetl.server.inbox import Answer, Ask, Entry, Inbox, Outcomes, pause_of
from noetl.server.listeners import Listeners
from noetl.server.plans import Plans
from noetl.server.refusals import Refusals
from noetl.server.room import Room
from noetl.server.settling import Settling
from noetl.server.states import States
from noetl.server.stored import Stored

_log = logging.getLogger(__name__)
_MOST_IN_BATCH = 512
_AFTER_TROUBLE_S = 0.5
_MOST_TRIES = 8  # of a batch that the store could not take
_MOST_GATHERED = 1_000


class Sequencer:
    """Decides messages one after the other and commits them in batches."""

    def __init__(
        self,
        log: EventLog,
        queue: WorkQueue,
        plans: Plans,
        clock: Clock,
        *,
        states: States | None = None,
        stored: Stored | None = None,
        lease_ms: int = 30_000,
        most_unanswered: int = 4_096,
        patience_s: float | None = None,
    ) -> None:
        self._store = log
        self._queue = queue
        self._plans = plans
        self._clock = clock
        self._states = states or States(log)
        self._stored = stored or Stored(None, clock)
        self._lease_ms = lease_ms
        self._room: Room[Entry] = Room(most_unanswered, patience_s)  # those inside wait for their answer
        self._inbox = Inbox()
        self.ask_no_more = self._inbox.ask_no_more
        self._sleep: asyncio.Future[None] | None = None
        self._is_waiting = False  # for something to do
        self.in_row = 0  # reports that were decided at once since others had their turn
        self.handed = Handed(queue, clock, self.look)
        self.listeners = Listeners()
        self.listeners.on_end.append(lambda commit: self._states.over(commit.execution_id))
        self._alone = AtOnce(log, self._states, plans, self._inbox, self.handed, clock, lease_ms)
        self._single: Entry | None = None  # a report that is the next batch, all by itself
        self._refusals = Refusals(log, self._inbox, self._room, self.handed, clock, plans.keeps_letters)
        self._settling = Settling(
            self._inbox, self._room, self._states, self.handed, self.listeners, self._refusals, clock, self._wake
        )
        self._refusals.note = self._settling.note
        self._stopped: Exception | None = None
        self._more = False  # the store holds more messages than were gathered
        self._left = True  # the store may hold messages that nobody knows of: it was just opened, or a commit failed
        self._aside: set[asyncio.Task[None]] = set()  # messages whose decision waits for stored results

    # What others ask of it

    async def submit(self, execution_id: str, message: AnyMessage, act: Act = None) -> Answer:
        """Decide a message; the answer comes after it is durable, and so is who sent it.

        Where too many are unanswered it waits for room, as long as the patience lasts. Raises Overloaded after that.
        """
        entry = Entry(execution_id, message, None, act)
        if isinstance(message, Start) and (found := self._begun(entry)) is not None:
            return found
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        entry.answer = answer
        if not self._room.enter(entry):
            await self._room.wait(entry)
        try:
            self._take_in((entry,))
            return await answer
        finally:
            self._room.leave(entry)

    async def submit_all(self, entries: Sequence[Entry]) -> list[Answer | Exception]:
        """Decide messages that came together, all let in at once; gives each one's answer, or why it has none."""
        first = entries[0]
        if not self._room.enter(first):
            await self._room.wait(first)
        self._room.inside.update(entries)
        try:
            self._take_in(entries)
            return await Outcomes(entries)
        finally:
            self._room.inside.difference_update(entries)
            self._room.leave(first)

    async def report(self, entry: Entry) -> Answer:
        """Decide a report of a worker likewise; with the answer comes new work."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        entry.answer = answer
        if not self._room.enter(entry):
            await self._room.wait(entry)
        try:
            self._take_in((entry,))
            return await answer
        except BaseException:
            if entry.leases:  # nobody is there any more to receive them
                self.handed.take_back(entry.message.message_id, entry.leases)
            raise
        finally:
            self._room.leave(entry)

    def _take_in(self, entries: Sequence[Entry]) -> None:
        if self._stopped is not None:
            raise self._stopped
        self._inbox.entries.extend(entries)
        self._wake()

    def at_once(self, entry: Entry) -> list[Lease] | None:
        """Do all about a report here and now, and give new work for it; None where it has to wait for its turn."""
        return self._at_once(entry) if self._alone.is_quick and self.would_be_alone() else None

    def _at_once(self, entry: Entry) -> list[Lease] | None:
        self.in_row += 1
        done = self._alone.take(entry)
        if done is None:
            self._left = self._alone.in_vain
            return None
        self._settling.note(done.commit)
        return self._settling.given(entry, done)

    def _begun(self, entry: Entry) -> Answer | None:
        """Do all about a start here and now, likewise.

        Only where a worker waits and nothing is out: of many that come together the first is taken so, and brings work
        out, and the others share a batch.
        """
        if not self._alone.is_quick or not self._inbox.waiting or self.handed.out or not self.would_be_alone():
            return None
        done = self._alone.take(entry)
        if done is None or done.verdict is None:
            self._left = self._alone.in_vain
            return None
        self._settling.note(done.commit)
        self._settling.given(entry, done)
        return answer_of(done.commit.projection, done.verdict)

    def soon(self, entry: Entry) -> bool:
        """Take a report whose sender is told by a call; False where it has to be sent the usual way.

        It is a batch by itself where it would be alone, and else in the next one.
        """
        if self.would_be_alone():
            if not self._alone.is_quick:
                self._single, self._is_waiting = entry, False
                self._wake()
                return True
            given = self._at_once(entry)
            if given is not None and entry.told is not None:
                entry.told(given)
            if given is not None or self._left:
                return given is not None
        if self._stopped is not None or not self._room.enter(entry):
            return False
        self._take_in((entry,))
        return True

    def would_be_alone(self) -> bool:
        """Tell whether no other message can be in a batch with one that came now."""
        if not self._is_waiting or len(self.handed.out) > 1:
            return False
        inbox = self._inbox
        return not (inbox.entries or inbox.look or self._left or self._more)

    async def _take_single(self, single: Entry) -> None:
        done = await self._alone.take_soon(single)
        self._single = None
        if done is None:
            self._left = self._alone.in_vain
            self._refusals.send_back(single)
            return
        self._settling.take_in(done.commit)
        try:
            given = self._settling.given(single, done)
            if single.told is not None:
                single.told(given)
            self.listeners.tell(done.commit)
        except Exception:  # noqa: BLE001  what is committed stands, and one that cannot be told ends nothing
            _log.exception("not everybody can be told of a report of execution %s", single.execution_id)

    def ask(self, ask: Ask) -> None:
        """Let a worker ask for work with the next batch, and wait if it says so."""
        if self._stopped is not None:
            raise self._stopped
        if self._inbox.ask(ask, self._clock.now()):
            self._wake()

    def look(self) -> None:
        """Look into the queue for those who wait: it may have changed by another hand or by time."""
        self._inbox.look = True
        self._inbox.dry.clear()
        self._wake()

    @property
    def unanswered(self) -> int:
        """How many messages wait for their answer."""
        return len(self._room.inside) + (self._single is not None)

    async def state(self, execution_id: str) -> Execution:
        """Give the state as it stands, to be looked at and not changed."""
        return await self._states.get(execution_id)

    async def gather(self, known: frozenset[str] | None = None) -> frozenset[str]:
        """Take in messages that the system sent itself; where `known` is given, only those that were there before.

        A message of another sequencer that lives is soon gone; one that stays was left behind.
        """
        aside = self._refusals.set_aside
        most = _MOST_GATHERED + len(aside)
        found = await self._queue.inbox(most)
        self._more = len(found) == most
        for execution_id, message in found:
            name = message.message_id
            if name not in aside and (known is None or name in known):
                self._inbox.own(execution_id, message)
        self._wake()
        return frozenset(message.message_id for _, message in found)

    async def run(self) -> None:
        """Work until cancelled; whoever still waits then is told."""
        try:
            while True:
                if self._left or (self._more and self._inbox.idle()):
                    await self._gather_more()
                elif self._inbox.idle():
                    self._sleep, self._is_waiting = asyncio.get_running_loop().create_future(), True
                    await self._sleep
                self._is_waiting = False
                if self._single is not None:
                    await self._take_single(self._single)
                elif not self._inbox.idle():
                    await self._turn()
        finally:
            self._stop()

    def _wake(self) -> None:
        if self._sleep is not None and not self._sleep.done():
            self._sleep.set_result(None)

    async def _gather_more(self) -> None:
        try:
            await self.gather()
            self._left = False
        except Exception as error:  # noqa: BLE001  whatever it was: those who ask must be served or told
            _log.warning("messages wait for the store: %s", error)
            await self._clock.sleep(_AFTER_TROUBLE_S)

    def _stop(self) -> None:
        """Tell everybody who waits that no answer will come."""
        text = "the control plane has stopped before it answered; whether the message was applied is not known: send it again"
        self._stopped = StoreUnavailable(text)
        self._is_waiting = False
        if self._single is not None:
            self._refusals.send_back(self._single)
        for task in self._aside:
            task.cancel()
        for entry in list(self._room.inside):
            self._refusals.tell(entry, self._stopped)
        for ask in (*self._inbox.asks, *self._inbox.waiting):
            if not ask.answer.done():
                ask.answer.set_result([])

    # One batch

    async def _turn(self) -> None:
        entries, batch = self._inbox.take(_MOST_IN_BATCH), Batch(self._clock.now())
        if entries:
            await self._decide(entries, batch)
        if batch.postponed:
            self._inbox.again(batch.postponed)
        asks = self._inbox.served(batch.claims, batch.commits, batch.now)
        if batch.entries or asks:
            await self._commit(batch, asks)
        for entry, problem in batch.poison:
            await self._give_up(entry, problem, is_decided=False)
        if batch.postponed and any(entry.tries for entry in batch.postponed):
            await self._clock.sleep(pause_of(entries))

    async def _decide(self, entries: Sequence[Entry], batch: Batch) -> None:
        broken: set[str] = set()
        for entry in entries:
            if broken and entry.execution_id in broken:
                batch.postponed.append(entry)
                continue
            try:
                made = at_hand(entry, self._states, self._plans, batch.now)
                if made is None:
                    made = await decided(entry, self._store, self._states, self._plans, self._clock.now())
                    batch.now = self._clock.now()
                if isinstance(made, Needs):
                    broken |= {entry.execution_id} if self._set_out(entry, made) else set()
                    continue
            except Exception as error:  # noqa: BLE001  a mistake in one message must not stop the others
                self._states.drop(entry.execution_id)
                broken.add(entry.execution_id)
                if not isinstance(error, StoreUnavailable):
                    batch.poison.append((entry, error))
                elif self._may_try_again(entry, error):
                    batch.postponed.append(entry)
                continue
            batch.entries.append(entry)
            batch.commits.append(made)
            if entry.want:
                batch.claim(entry, self._lease_ms)

    def _set_out(self, entry: Entry, needs: Needs) -> bool:
        """Set a message aside while what it needs is brought, others go on; tells whether its state was touched."""
        if needs.touched or isinstance(entry.message, Start):
            self._states.drop(entry.execution_id)
        task = asyncio.create_task(self._bring(entry, needs), name="noetl-bring")
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)
        return needs.touched

    async def _bring(self, entry: Entry, needs: Needs) -> None:
        try:
            entry.resolved |= await self._stored.bring(needs)
        except StoreUnavailable as error:
            if not self._may_try_again(entry, error):
                return
            await self._clock.sleep(pause_of([entry]))
        except Exception as error:  # noqa: BLE001  whoever waits must be told
            entry.trouble = error
        self._inbox.again([entry])
        self._wake()

    async def _commit(self, batch: Batch, asks: Sequence[Ask]) -> None:
        batch.claims += claims_of(asks, batch.now, self._lease_ms)
        try:
            receipt = await self._store.commit(batch.commits, batch.claims)
        except Exception as error:  # noqa: BLE001  whatever it was: nothing in memory can be trusted, the log can
            self.handed.doubt(batch.claims)
            self._inbox.dry.clear()
            self._inbox.waiting = [ask for ask in self._inbox.waiting if ask not in asks]
            self._inbox.asks[:0] = asks
            await self._start_over(batch.entries, error)
            return
        await self._settling.settle(batch, asks, receipt)

    async def _start_over(self, entries: Sequence[Entry], error: Exception) -> None:
        for entry in entries:
            self._states.drop(entry.execution_id)
            entry.refused = True
        self._left = True  # if it was written after all, the messages it sends are in the store and not here
        if isinstance(error, StoreUnavailable):
            pause = pause_of(entries)
            self._inbox.again([entry for entry in entries if self._may_try_again(entry, error)])
            await self._clock.sleep(pause)
        elif len(entries) == 1:
            await self._give_up(entries[0], error, is_decided=True)
        else:  # one of them cannot be written: each is tried by itself
            for entry in entries:
                entry.alone = True
            self._inbox.again(entries)

    def _may_try_again(self, entry: Entry, error: StoreUnavailable) -> bool:
        entry.tries += 1
        if entry.is_own or entry.tries <= _MOST_TRIES:
            return True
        self._refusals.tell(entry, error)
        return False

    async def _give_up(self, entry: Entry, error: Exception, *, is_decided: bool) -> None:
        try:
            await self._refusals.give_up(entry, error, is_decided=is_decided)
        except StoreUnavailable as away:
            if self._may_try_again(entry, away):
                self._inbox.again([entry])
                await self._clock.sleep(pause_of([entry]))
