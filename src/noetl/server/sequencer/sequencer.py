"""The only writer of events: decides messages, commits batches, replies.

A batch is committed in one transaction, before the replies. One turn: take → decide → commit → publish. A message that
arrives while no turn is running gets its turn at once, in the caller's call; those that arrive during a turn share the
next one (group commit). A turn completes without suspending unless something has to be awaited: a state or a plan to
load, or the store; then it continues in a task. Consecutive turns yield to the event loop in between.

No message is answered before it is durable, and a cached state is trusted only after its commit: on a conflict or an
error it is dropped and the messages are decided again from the log. Several sequencers may share a store. Holds no rule
of the language. Tested in tests/unit/server/sequencer/test_sequencer.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from msgspec import Struct, field

from noetl.engine.decision.builder import projection
from noetl.engine.handlers.decide import NeedsLoad
from noetl.engine.state.execution import Execution
from noetl.model.commit import Intake
from noetl.model.errors import Overloaded, Passed, StoreUnavailable, log_level
from noetl.model.messages import AnyMessage, Report, Start
from noetl.model.work import Lease
from noetl.observe.engine_counts import EngineCounts
from noetl.ports import Audit, Claim, Clock, Commit, Committed, EventLog, Receipt, WorkQueue
from noetl.ports.work import Answer, resolve
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.cache.result_loader import ResultLoader
from noetl.server.cache.state_cache import StateCache
from noetl.server.sequencer.admission import AdmissionQueue
from noetl.server.sequencer.apart import QUICK, HeavyTemplates
from noetl.server.sequencer.commit_hooks import CommitHooks
from noetl.server.sequencer.commits import answer_of
from noetl.server.sequencer.decide import decide_cached, decide_loading
from noetl.server.sequencer.inbox import Entry, Inbox, Subscription, backoff
from noetl.server.sequencer.outstanding import OutstandingLeases
from noetl.server.sequencer.poison import PoisonHandler

_log = logging.getLogger(__name__)
_MOST_IN_BATCH = 512
_TURN_MS = 50  # after which a turn decides no further message
_AFTER_TROUBLE_S = 0.5
_MOST_TRIES = 8  # of a message while the store is unavailable
_MOST_GATHERED = 1_000
_LOADED_TOGETHER = 32  # states, which may be large
_Outcome = Receipt | Awaitable[Receipt] | Exception | None  # of a commit; None: there was nothing to commit


class Batch(Struct):
    """What one turn decides and commits."""

    now: int
    undecided: deque[Entry] = field(default_factory=deque)
    entries: list[Entry] = []  # decided, in the order of `commits`
    commits: list[Commit] = []
    claims: list[Claim] = []  # first those of `reporters`, then those of `subscriptions`
    reporters: list[Entry] = []
    subscriptions: list[Subscription] = []
    postponed: list[Entry] = []  # to be decided in a later turn
    poison: list[tuple[Entry, Exception]] = []  # cannot be decided
    broken: set[str] = set()  # executions whose state was dropped: their later messages are postponed
    unread: list[tuple[Entry, Committed]] = []  # applied; the row of the answer has to be made of the state
    snapshots: list[Committed] = []  # applied; a snapshot is due
    began: float = 0.0  # its transaction

    def claim(self, inbox: Inbox, lease_ms: int, limits: Mapping[str, int]) -> None:
        """Claim work for the reporters, then for subscriptions it may suffice for."""
        now, until = self.now, self.now + lease_ms
        if limits and any(commit.finished or commit.dropped for commit in self.commits):
            inbox.look()  # what ends may make room under a limit
        has_work = any(commit.work for commit in self.commits)
        for entry in self.entries:
            takes = entry.takes
            if not entry.want or takes is None or not isinstance(entry.message, Report):
                continue
            if not has_work and inbox.is_dry(takes, now):
                entry.serve(())  # there is nothing
            else:
                self.reporters.append(entry)
                self.claims.append(Claim(entry.message.worker, takes[0], entry.want, now, until, takes[1], limits))
        self.subscriptions = inbox.choose(self.claims, self.commits, now)
        for one in self.subscriptions:
            most, is_for_idle = one.asks
            self.claims.append(Claim(one.worker, one.pools, most, now, until, one.tags, limits, is_for_idle))

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left that has to be awaited."""
        return not (self.undecided or self.poison or self.unread or self.snapshots or self.postponed)


class Sequencer:
    """Decides messages one after the other and commits them in batches."""

    def __init__(
        self,
        log: EventLog,
        queue: WorkQueue,
        plans: PlanCache,
        clock: Clock,
        *,
        states: StateCache | None = None,
        stored: ResultLoader | None = None,
        lease_ms: int = 30_000,
        most_unanswered: int = 4_096,
        patience_s: float | None = None,
        heavy: HeavyTemplates | None = None,
        limits: Mapping[str, int] | None = None,
        counts: EngineCounts | None = None,
    ) -> None:
        self._store = log
        self._counts = counts or EngineCounts()
        self._limits = limits or {}
        self._heavy = heavy
        self._quick = QUICK if heavy is not None else None
        self._parked: dict[str, list[Entry]] = {}  # by execution: messages behind one that is evaluated apart
        self._queue = queue
        self._plans = plans
        self._clock = clock
        self._states = states or StateCache(log)
        self._stored = stored or ResultLoader(None, clock)
        self._lease_ms = lease_ms
        self._admission: AdmissionQueue[Entry] = AdmissionQueue(
            most_unanswered, patience_s, self._admit, self._refuse_overload
        )
        self._inbox = Inbox()
        self.outstanding = OutstandingLeases(queue, clock, self.look)
        self.hooks = CommitHooks()
        self.hooks.register(end=lambda commit: self._states.mark_ended(commit.execution_id))
        self._poison = PoisonHandler(log, clock, self._note_apart, keeps=plans.keeps_letters)
        self._crash: asyncio.Future[None] | None = None  # while it runs; gets the error of a turn that crashed
        self._stopped: Exception | None = None
        self._is_busy = False  # a turn is running, or ran in this pass of the event loop
        self._more = False  # the store holds more messages than were gathered
        self._left = True  # the store may hold unknown messages: it was just opened, or a commit failed
        self._tasks: set[asyncio.Task[None]] = set()  # the turn, where it awaits something, and loads for decisions

    # What others ask of it

    def offer(self, *entries: Entry) -> None:
        """Queue messages that arrived together; each gets exactly one reply.

        The reply comes when the message is durable or was refused. If too many messages are unanswered, new ones wait
        for admission, and are refused with Overloaded if that takes too long.
        """
        if self._stopped is not None:
            for entry in entries:
                self._answer(entry, self._stopped)
        else:
            self._admission.enter(entries)

    async def submit(
        self, execution_id: str, message: AnyMessage, act: Audit = None, intake: Intake | None = None
    ) -> Answer:
        """Decide a message, audited as `act`; return the answer or raise its refusal."""
        [answer] = await self.submit_all([(execution_id, message, act)], intake)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def submit_all(
        self, messages: Sequence[tuple[str, AnyMessage, Audit]], intake: Intake | None = None
    ) -> list[Answer | Exception]:
        """Decide messages that arrived together; return each one's answer or error."""
        loop = asyncio.get_running_loop()
        answers: list[asyncio.Future[Answer | Exception]] = [loop.create_future() for _ in messages]
        entries = tuple(
            Entry(to, message, partial(resolve, answer), act, intake=intake)
            for (to, message, act), answer in zip(messages, answers, strict=True)
        )
        self.offer(*entries)
        try:
            return [await answer for answer in answers]
        except asyncio.CancelledError:
            self._admission.withdraw(entries)
            for entry in entries:
                entry.abandon()
            raise

    def request(self, subscription: Subscription) -> None:
        """Claim work for a worker with the next batch."""
        if self._stopped is None and self._inbox.request(subscription, self._clock.now()):
            self._advance()

    def require_running(self) -> None:
        """Raise StoreUnavailable if the sequencer has stopped."""
        if self._stopped is not None:
            raise self._stopped

    def withdraw(self, subscription: Subscription) -> None:
        """Stop claiming work for a worker."""
        self._inbox.withdraw(subscription)

    def look(self) -> None:
        """Check the queue for all waiting workers, as it may change without a batch."""
        self._inbox.look()
        self._advance()

    @property
    def unanswered(self) -> int:
        """How many messages wait for their answer."""
        return len(self._admission)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return not (self._is_busy or self._tasks or self._has_more)

    async def state(self, execution_id: str) -> Execution:
        """Return the state of an execution, to be read and not changed."""
        return await self._states.get(execution_id)

    async def gather(self, known: frozenset[str] | None = None) -> frozenset[str]:
        """Take in the system's messages; with `known`, only those: they were left behind."""
        aside = self._poison.set_aside
        most = _MOST_GATHERED + len(aside)
        found = await self._queue.inbox(most)
        self._more = len(found) == most
        for execution_id, message in found:
            name = message.message_id
            if name not in aside and (known is None or name in known):
                self._inbox.add_own(execution_id, message)
        self._advance()
        return frozenset(message.message_id for _, message in found)

    async def run(self) -> None:
        """Run until cancelled; everything that still waits then is answered."""
        self._crash = asyncio.get_running_loop().create_future()
        try:
            self._advance()
            await self._crash
        finally:
            self._stop()

    def _stop(self) -> None:
        text = "the control plane has stopped before it answered; whether the message was applied is not known: send it again"
        self._stopped = StoreUnavailable(text)
        for task in self._tasks:
            task.cancel()
        for entry in self._admission.drain():
            self._answer(entry, self._stopped)
        for subscription in self._inbox.withdraw_all():
            if subscription.is_open and not subscription.is_closed:
                self._deliver(subscription, [])

    def _admit(self, entries: Sequence[Entry]) -> None:
        self._inbox.append(entries)
        self._advance()

    def _refuse_overload(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._answer(entry, Overloaded())

    # One turn

    @property
    def _has_more(self) -> bool:
        return self._left or self._more or not self._inbox.is_idle

    def _advance(self) -> None:
        """Begin a turn, unless one is running or there is nothing to do."""
        if self._is_busy or self._crash is None or self._stopped is not None or not self._has_more:
            return
        self._is_busy = True
        try:
            self._turn()
        except Exception as error:  # noqa: BLE001  it must end the server, not the caller
            self._end(error)

    def _turn(self) -> None:
        """Take, decide, commit and publish a batch; continue in a task if it must wait."""
        if self._left or (self._more and self._inbox.is_idle):
            self._go_on(self._gather_left())
            return
        batch, outcome = self._begin()
        if isinstance(outcome, Receipt):
            self._publish(batch, outcome)
            outcome = None
        if outcome is None and batch.is_finished:
            asyncio.get_running_loop().call_soon(self._turn_ended)
        else:
            self._go_on(self._finish(batch, outcome), outcome)

    def _begin(self) -> tuple[Batch, _Outcome]:
        """Take a batch, and decide and commit it as far as possible without awaiting."""
        batch = Batch(self._clock.now(), deque(self._inbox.take(_MOST_IN_BATCH)))
        self._decide(batch)
        return batch, None if batch.undecided else self._commit(batch)

    def _go_on(self, turn: Coroutine[None, None, None], outcome: _Outcome = None) -> None:
        task = asyncio.create_task(turn, name="noetl-turn")
        self._tasks.add(task)
        task.add_done_callback(self._turn_ended)
        if isinstance(outcome, Coroutine):  # cancelled before it began, the task would leave it unawaited
            task.add_done_callback(lambda _: outcome.close())

    def _turn_ended(self, task: asyncio.Task[None] | None = None) -> None:
        """Begin the next turn, from the event loop so that ready callbacks run first."""
        self._is_busy = False
        if task is not None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                self._end(error)
        self._advance()

    def _end(self, error: BaseException) -> None:
        """End `run` with the error of a turn that crashed."""
        if self._crash is not None and not self._crash.done():
            self._crash.set_exception(error)

    async def _finish(self, batch: Batch, outcome: _Outcome) -> None:
        if batch.undecided:
            await self._load(batch)
            outcome = self._commit(batch)
        if outcome is not None and not isinstance(outcome, Receipt | Exception):
            try:
                outcome = await outcome
            except Exception as error:  # noqa: BLE001  whatever it was: nothing in memory can be trusted, the log can
                outcome = error
        if isinstance(outcome, Receipt):
            self._publish(batch, outcome)
        elif outcome is not None:
            await self._start_over(batch, outcome)
        for entry, problem in batch.poison:
            await self._give_up(entry, problem, is_decided=False)
        for entry, verdict in batch.unread:
            await self._answer_row(entry, verdict)
        for verdict in batch.snapshots:
            await self._states.committed(verdict.execution_id, verdict.last_seq)
        if any(entry.tries for entry in batch.postponed):
            await self._clock.sleep(backoff(batch.postponed))

    async def _gather_left(self) -> None:
        """Run a turn from messages left in the store; an outage delays no caller."""
        try:
            await self.gather()
            self._left = False
        except Exception as error:  # noqa: BLE001  whatever it was: callers must be served or answered
            _log.log(log_level(error), "messages wait for the store: %s", error)
            await self._clock.sleep(_AFTER_TROUBLE_S)
        if not self._inbox.is_idle:
            await self._finish(*self._begin())

    # Decide

    def _decide(self, batch: Batch) -> None:
        """Decide messages in order, until one needs something that is not in memory."""
        while batch.undecided:
            if batch.entries and self._clock.now() - batch.now > _TURN_MS:
                batch.postponed.extend(batch.undecided)  # slow decisions must not hold up the event loop
                batch.undecided.clear()
                return
            entry = batch.undecided[0]
            if entry.execution_id in batch.broken:
                batch.postponed.append(entry)
            elif not self._parks(entry):
                try:
                    made = decide_cached(entry, self._states, self._plans, batch.now, self._quick)
                except Exception as error:  # noqa: BLE001  a mistake in one message must not stop the others
                    self._drop(batch, entry, error)
                else:
                    if made is None:
                        return
                    self._add(batch, entry, made)
            batch.undecided.popleft()

    async def _load(self, batch: Batch) -> None:
        """Decide the rest of a batch, and load what that needs."""
        while batch.undecided:
            entry = batch.undecided.popleft()
            if self._parks(entry):
                continue
            try:
                await self._states.load(_loaded_together(entry, batch.undecided))
                with self._states.pinned(entry.execution_id):  # its state is changed at the end
                    made = await decide_loading(
                        entry, self._store, self._states, self._plans, self._clock.now(), self._quick
                    )
            except Exception as error:  # noqa: BLE001  likewise
                self._drop(batch, entry, error)
            else:
                self._add(batch, entry, made)
            batch.now = self._clock.now()
            self._decide(batch)

    def _add(self, batch: Batch, entry: Entry, made: Commit | NeedsLoad) -> None:
        if not isinstance(made, NeedsLoad):
            batch.entries.append(entry)
            batch.commits.append(made)
            if isinstance(entry.message, Start):
                self._states.weigh(entry.execution_id)
            return
        # Set aside while what it needs is loaded; others go on.
        if made.touched or isinstance(entry.message, Start):
            self._states.drop(entry.execution_id)
        if made.touched:
            batch.broken.add(entry.execution_id)
        if made.template:
            self._parked[entry.execution_id] = []
        task = asyncio.create_task(self._load_needs(entry, made), name="noetl-load")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _drop(self, batch: Batch, entry: Entry, error: Exception) -> None:
        """Remove a message from a batch that cannot be decided, or not now."""
        self._states.drop(entry.execution_id)
        batch.broken.add(entry.execution_id)
        if not isinstance(error, StoreUnavailable):
            batch.poison.append((entry, error))
        elif self._may_try_again(entry, error):
            batch.postponed.append(entry)

    async def _load_needs(self, entry: Entry, needs: NeedsLoad) -> None:
        back, is_heavy = [entry], bool(needs.template)
        try:
            if is_heavy and self._heavy is not None:
                needs = await self._heavy.evaluate(entry, self._states, needs.template, self._clock.now())
            entry.resolve(await self._stored.bring(needs))
        except StoreUnavailable as error:
            if self._may_try_again(entry, error):
                await self._clock.sleep(backoff([entry]))
            else:
                back.clear()
        except Exception as error:  # noqa: BLE001  the sender gets it
            entry.fail(error)
        self._inbox.put_back([*back, *(self._parked.pop(entry.execution_id, ()) if is_heavy else ())])
        self._advance()

    def _parks(self, entry: Entry) -> bool:
        """Park a message while another of its execution is evaluated apart.

        Deciding it would change the state, and the answers would hold no more.
        """
        parked = self._parked.get(entry.execution_id)
        if parked is not None:
            parked.append(entry)
        return parked is not None

    # Commit

    def _commit(self, batch: Batch) -> _Outcome:
        if batch.postponed:
            self._inbox.put_back(batch.postponed)
        batch.claim(self._inbox, self._lease_ms, self._limits)
        if not batch.entries and not batch.claims:
            return None
        batch.began = self._counts.begin()
        try:
            return self._store.commit(batch.commits, batch.claims)
        except Exception as error:  # noqa: BLE001  whatever it was: nothing in memory can be trusted, the log can
            return error

    async def _start_over(self, batch: Batch, error: Exception) -> None:
        """Decide a batch again from the log, after a failed or unknown commit."""
        entries = batch.entries
        self.outstanding.doubt(batch.claims)
        self._inbox.doubt()
        self._inbox.claim_again(batch.subscriptions)
        for entry in entries:
            self._states.drop(entry.execution_id)
            entry.refuse(alone=len(entries) > 1 and not isinstance(error, StoreUnavailable))
        self._left = True  # if it was written after all, the messages it sends are in the store and not here
        if isinstance(error, StoreUnavailable):
            pause = backoff(entries)
            self._inbox.put_back([entry for entry in entries if self._may_try_again(entry, error)])
            await self._clock.sleep(pause)
        elif len(entries) == 1:
            await self._give_up(entries[0], error, is_decided=True)
        else:  # one of them cannot be written: each is tried by itself
            self._inbox.put_back(entries)

    def _may_try_again(self, entry: Entry, error: StoreUnavailable) -> bool:
        if entry.count_try() <= _MOST_TRIES or entry.is_own:
            return True
        self._answer(entry, error)
        return False

    async def _give_up(self, entry: Entry, error: Exception, *, is_decided: bool) -> None:
        try:
            self._answer(entry, await self._poison.keep(entry, error, is_decided=is_decided))
        except StoreUnavailable as away:
            if self._may_try_again(entry, away):
                self._inbox.put_back([entry])
                await self._clock.sleep(backoff([entry]))

    # Publish

    def _publish(self, batch: Batch, receipt: Receipt) -> None:
        """Answer a batch that is durable, take in what it sends, and deliver new work."""
        self._counts.committed(len(batch.entries), batch.began)
        count = len(batch.reporters)
        for entry, leases in zip(batch.reporters, receipt.leases[:count], strict=True):
            entry.serve(leases)
            self.outstanding.add(leases)
        applied: list[Commit] = []
        again: list[Entry] = []
        for entry, commit, verdict in zip(batch.entries, batch.commits, receipt.commits, strict=True):
            if verdict.status == "applied":
                self._note(commit)
                applied.append(commit)
                if self._states.is_due(verdict.execution_id, verdict.last_seq):
                    batch.snapshots.append(verdict)
            else:
                self._inbox.doubt()  # others write to the same store
                self._states.drop(commit.execution_id)
                if verdict.status == "full" and not entry.queue(verdict.why):
                    self._answer(entry, Answer("full"))  # it waits on
                    continue
                if verdict.status == "passed":
                    self._answer(entry, Passed())
                    continue
                if verdict.status != "duplicate":
                    entry.refuse(late=verdict.status == "fenced")
                    again.append(entry)
                    continue
                # A commit of unknown outcome had applied it, and published nothing.
                self.hooks.publish_unknown(commit.execution_id, self._clock.now())
            self._answer_applied(batch, entry, commit, verdict)
        if again:
            self._inbox.put_back(again)
        self._deliver_all(batch, receipt, count)
        if applied:
            self.hooks.publish(applied)

    def _note(self, commit: Commit) -> None:
        for other, message in commit.inbox:
            self._inbox.add_own(other, message)
        self.outstanding.remove_of(commit)
        if commit.letters:
            self._poison.forget()

    def _note_apart(self, commit: Commit) -> None:
        self._note(commit)
        self.hooks.publish((commit,))

    def _answer_applied(self, batch: Batch, entry: Entry, commit: Commit, verdict: Committed) -> None:
        if entry.is_own:
            self._inbox.forget_own(entry.message.message_id)
        elif entry.takes is not None:
            status, leases = "late" if entry.late else verdict.status, entry.leases
            if status == "duplicate":
                leases = [*self.outstanding.with_report(entry.message.message_id), *leases]
            elif leases:
                self.outstanding.remember(entry.message.message_id, leases)
            self._answer(entry, Answer(status, leases))
        elif commit.projection:
            self._answer(entry, answer_of(commit.projection, verdict, is_late=entry.late))
        else:
            batch.unread.append((entry, verdict))

    async def _answer_row(self, entry: Entry, verdict: Committed) -> None:
        try:
            row = projection(await self._states.get(entry.execution_id))
            self._answer(entry, answer_of(row, verdict, is_late=entry.late))
        except StoreUnavailable as error:  # it is applied; sent again, it is a duplicate
            self._answer(entry, error)

    def _answer(self, entry: Entry, answer: Answer | Exception) -> None:
        """Answer a message, once; a refused one of the system's own is set aside."""
        if entry.is_own:
            if isinstance(answer, Exception):
                self._inbox.forget_own(entry.message.message_id)
                self._poison.put_aside(entry, answer)
            return
        self._admission.leave(entry)
        reply, is_taken = entry.take_reply(), False
        if reply is not None:
            try:
                is_taken = reply(answer)
            except Exception:  # noqa: BLE001  the commit is durable, and one reply must not block the others
                _log.exception("a reply about execution %s failed", entry.execution_id)
        if entry.leases and (not is_taken or isinstance(answer, Exception)):
            self.outstanding.take_back(entry.message.message_id, entry.leases)

    def _deliver_all(self, batch: Batch, receipt: Receipt, first: int) -> None:
        """Deliver what subscriptions claimed; check the queue again if work is left."""
        subscriptions, leases = batch.subscriptions, receipt.leases[first:]
        for subscription, found in zip(subscriptions, leases, strict=True):
            wanted = found[: max(0, subscription.capacity)]
            self.outstanding.give_back(found[len(wanted) :])
            if wanted or (not subscription.waits and subscription.is_open):
                self.outstanding.add(wanted)
                self._deliver(subscription, wanted)
        self._inbox.served(subscriptions, batch.claims[first:], leases)
        taken = {lease.work.work_id for found in receipt.leases for lease in found}
        left = [item for commit in batch.commits for item in commit.work if item.work_id not in taken]
        if left:
            self._inbox.note_left(item for item in left if item.available_at <= batch.now)

    def _deliver(self, subscription: Subscription, leases: Sequence[Lease]) -> None:
        try:
            subscription.deliver(leases)
        except Exception:  # noqa: BLE001  likewise; the leases expire
            _log.exception("work cannot be delivered to %s", subscription.worker)


def _loaded_together(entry: Entry, others: Iterable[Entry]) -> Iterator[str]:
    """Yield the executions whose states the next messages need; a new one has none."""
    for one in (entry, *islice(others, _LOADED_TOGETHER - 1)):
        if one.refused or not isinstance(one.message, Start):
            yield one.execution_id
