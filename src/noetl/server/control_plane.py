"""Control plane in this process: sequencer, timers, leases, store watcher.

The watcher notices commits of other processes.

    async with LocalControlPlane(store, clock) as control:
        await control.submit(execution_id, Start(…))

Speaks the `ControlPlane` port, as the HTTP one does. Tested in tests/unit/server/test_control_plane.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from noetl.doorbells.poll import Poll
from noetl.dsl.analysis.needed_credentials import Need
from noetl.dsl.checking.requirements import CannotRun
from noetl.dsl.checking.uses import Unavailable
from noetl.engine.decision.evaluations import Evaluations, Heavy
from noetl.engine.plan.plan import Plan
from noetl.engine.routing.start import check, misfit
from noetl.model.commit import Intake
from noetl.model.errors import InvalidInput, InvalidPayload, NoetlError, log_level
from noetl.model.events import Event
from noetl.model.letters import DeadLetter, LetterChange
from noetl.model.messages import AnyMessage, Report, Start
from noetl.model.work import WORK_LIMITS, Lease, kept_slots
from noetl.observe.engine_counts import EngineCounts
from noetl.ports import Audit, Blobs, Catalog, CivilClock, Commit, DerivedTables, Doorbell, EventLog, Receipt, WorkQueue
from noetl.ports.work import Deliver, Reply, Stop
from noetl.server.background.flow.admissions import Admissions
from noetl.server.background.lease_reaper import LeaseReaper
from noetl.server.background.timers import Timers
from noetl.server.cache.ids import new_execution
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.cache.result_loader import LOAD_MAX_BYTES, ResultLoader
from noetl.server.cache.state_cache import StateCache
from noetl.server.feeds.completion import CompletionWaiters
from noetl.server.feeds.followers import Followers
from noetl.server.processes.side import SideProcesses
from noetl.server.sequencer.apart import QUICK, HeavyTemplates
from noetl.server.sequencer.inbox import Entry, Subscription, Takes
from noetl.server.sequencer.sequencer import Sequencer

if TYPE_CHECKING:
    from noetl.server.background.reconciler import Reconciler

_log = logging.getLogger(__name__)
_LOOK_AGAIN_S = 0.05
_CHECKED_AT_ONCE = 50  # payloads between two passes of the event loop
Require = Callable[[Sequence[Need]], Awaitable[None]]  # raises MissingCredentials
_ANYTHING: Takes = (("",), ())  # pools and tags of a worker that has not named any


class Store(EventLog, WorkQueue, Catalog, Protocol):
    """A store that implements all three ports."""


class LocalControlPlane:
    """The control plane over a store, in process."""

    _tasks: Sequence[asyncio.Task[None]] = ()

    def __init__(
        self,
        store: Store,
        clock: CivilClock,
        *,
        defaults: Mapping[str, Any] | None = None,
        lease_s: float = 30.0,
        max_attempts: int = 6,
        look_s: float = 0.05,
        snapshot_every: int = 500,
        most_unanswered: int = 4_096,
        patience_s: float | None = None,
        blobs: Blobs | None = None,
        load_max_bytes: int = LOAD_MAX_BYTES,
        doorbell: Doorbell | None = None,
        cannot_run: CannotRun | None = None,
        unavailable: Unavailable | None = None,
        derived: DerivedTables | None = None,
        liveness_s: float = 10.0,
        ageing_s: float = 60.0,
        side: SideProcesses | None = None,
        credentials: Require | None = None,
    ) -> None:
        self._store, self._clock, self.counts = store, clock, EngineCounts()
        self._lease_ms, self.defaults = round(lease_s * 1000), defaults or {}
        self._doorbell: Doorbell = doorbell or Poll(clock)
        self._look_s, self._credentials = look_s, credentials
        self._plans = PlanCache(store, self.defaults, cannot_run=cannot_run, unavailable=unavailable)
        self._heavy = HeavyTemplates(side, self._plans) if side is not None else None
        self.sequencer = Sequencer(
            *(store, store, self._plans, clock),
            states=StateCache(store, every=snapshot_every, counts=self.counts),
            stored=ResultLoader(blobs, clock, load_max_bytes),
            lease_ms=self._lease_ms,
            most_unanswered=most_unanswered,
            patience_s=patience_s,
            heavy=self._heavy,
            limits=self.defaults.get(WORK_LIMITS),
            counts=self.counts,
        )
        listeners = self.sequencer.hooks
        self.followers, self.completion = Followers(store, clock, listeners), CompletionWaiters(store, listeners)
        if doorbell is not None:
            listeners.register(change=doorbell.ring)
        self.timers = Timers(store, self.sequencer, clock)
        parts = (store, self.sequencer, clock, self.counts)
        self.lease_reaper = LeaseReaper(*parts, max_attempts=max_attempts, every_s=min(1.0, max(lease_s / 10, 0.01)))
        self.admissions = Admissions(store, store, self.sequencer.submit, clock, listeners)
        self._derived, self._liveness_s, self._ageing_s = derived, liveness_s, ageing_s
        self._takes: dict[str, Takes] = {}  # by worker

    async def __aenter__(self) -> LocalControlPlane:
        parts = [self.sequencer.run, self.timers.run, self.lease_reaper.run, self.admissions.run, self._watch]
        parts += [self._keep_alive] if self._derived is not None and self._liveness_s > 0 else []
        parts += [self._age] if self._derived is not None and self._ageing_s > 0 else []
        self._tasks = [asyncio.create_task(part(), name=f"noetl-{part.__qualname__}") for part in parts]
        for task in self._tasks:
            task.add_done_callback(_tell_of_end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._doorbell.close()

    @property
    def is_whole(self) -> bool:
        """Whether all background tasks run; one that ended early has crashed."""
        return not any(task.done() for task in self._tasks)

    @property
    def work_limits(self) -> Mapping[str, int]:
        """How much work is leased at once, by `kind http` and `pool gpu`."""
        return self.defaults.get(WORK_LIMITS) or {}

    async def submit(
        self, execution_id: str, message: AnyMessage, act: Audit = None, intake: Intake | None = None
    ) -> Mapping[str, Any]:
        """Decide a message; a start that cannot succeed is refused unwritten."""
        if isinstance(message, Start) and "run_id" not in (message.parent or {}):
            await self._check(execution_id, message)
        return (await self.sequencer.submit(execution_id, message, act, intake)).row

    async def close_message(
        self, letter: DeadLetter, status: str, act: Audit = None, by: str = "", note: str = ""
    ) -> None:
        """Close the dead letter of a message, which no log holds."""
        now = self._clock.now()
        change = LetterChange(letter.message_id, status, now, by=by, note=note)
        audit = () if act is None else (act,)
        made = self._store.commit([Commit(str(new_execution(now)), 0, letters=(change,), audit=audit)])
        if not isinstance(made, Receipt):
            await made

    async def misfit(self, like: Start, payloads: Sequence[Mapping[str, Any]]) -> tuple[int, InvalidPayload] | None:
        """Return the first payload that does not match its schema, and why; or None."""
        plan, now = await self._plans.get(like.playbook), self._clock.now()
        for first in range(0, len(payloads), _CHECKED_AT_ONCE):
            found = await self._misfit(
                plan, str(new_execution(now)), like, payloads[first : first + _CHECKED_AT_ONCE], now
            )
            if found is not None:
                return first + found[0], found[1]
            await asyncio.sleep(0)  # a schema takes its time
        return None

    async def require_credentials(self, playbook: str) -> None:
        """Check that the credentials of a playbook exist. Raises MissingCredentials."""
        if self._credentials is not None and (needs := await self._plans.needs(playbook)):
            await self._credentials(needs)

    async def _check(self, execution_id: str, message: Start) -> None:
        """Refuse a start that cannot succeed, before anything is written."""
        plan, now = await self._plans.get(await self._plans.named(message)), self._clock.now()
        await self.require_credentials(plan.playbook_hash)
        try:
            check(plan, execution_id, message, now, self._evaluations())
        except Heavy:
            found = await self._misfit(plan, execution_id, message, [message.payload], now)
            if found is not None:
                raise found[1] from None

    async def _misfit(
        self, plan: Plan, execution_id: str, like: Start, payloads: Sequence[Mapping[str, Any]], now: int
    ) -> tuple[int, InvalidPayload] | None:
        try:
            return misfit(plan, execution_id, like, payloads, now, self._evaluations())
        except Heavy as heavy:
            assert self._heavy is not None  # nothing is too heavy without it
            found = await self._heavy.misfit(execution_id, like, payloads, heavy.template, now)
        if found is None:
            return None
        index, problem = found
        if index < 0:
            raise InvalidPayload(problem)
        return index, InvalidPayload(problem)

    def _evaluations(self) -> Evaluations:
        return Evaluations(None if self._heavy is None else QUICK)

    async def claim(
        self,
        worker: str,
        pools: Sequence[str],
        most: int,
        wait_s: float,
        tags: Sequence[str] = (),
        *,
        is_for_idle: bool = False,
    ) -> list[Lease]:
        """Lease up to `most` work items of these pools; wait up to `wait_s` for one."""
        self.sequencer.require_running()
        self.takes(worker, pools, tags)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Lease]] = loop.create_future()

        def deliver(leases: list[Lease]) -> None:
            claim.close()
            if answer.done():  # the caller is gone
                self.sequencer.outstanding.give_back(leases)
            else:
                answer.set_result(leases)

        sequencer = self.sequencer
        takes, kept = self._takes[worker], most if is_for_idle else 0
        claim = Subscription(
            worker, takes, most, deliver, sequencer.request, sequencer.withdraw, waits=wait_s > 0, kept=kept
        )
        timer = loop.call_later(wait_s, deliver, []) if wait_s > 0 else None
        try:
            sequencer.request(claim)
            return await answer
        except BaseException:
            if not answer.cancel() and not answer.cancelled():
                sequencer.outstanding.give_back(answer.result())
            raise
        finally:
            claim.close()
            if timer is not None:
                timer.cancel()

    def subscribe(
        self, worker: str, pools: Sequence[str], capacity: int, deliver: Deliver, stop: Stop
    ) -> LocalSubscription:
        """Subscribe to work of these pools; work created here comes with its commit."""
        self.takes(worker, pools, ())
        return LocalSubscription(self.sequencer, worker, self._takes[worker], capacity, deliver, stop)

    def report(self, execution_id: str, report: Report, want: int, reply: Reply) -> None:
        """Apply a report and lease new work in one commit; `reply` once it is durable."""
        takes = self._takes.get(report.worker, _ANYTHING)
        self.sequencer.offer(Entry(execution_id, report, reply, None, takes, want))

    async def plan(self, playbook: str) -> Plan:
        """Return the plan of a pinned playbook."""
        return await self._plans.get(playbook)

    def cached_plan(self, playbook: str) -> Plan | None:
        """Return a cached plan."""
        return self._plans.cached(playbook)

    def takes(self, worker: str, pools: Sequence[str], tags: Sequence[str]) -> None:
        """Note the pools and tags of a worker, before it claims anything."""
        self._takes[worker] = (tuple(pools), tuple(tags))

    def forget(self, worker: str) -> None:
        """Forget a worker that is gone."""
        self._takes.pop(worker, None)

    async def heartbeat(self, worker: str, held: Sequence[tuple[str, int]]) -> list[str]:
        """Renew leases; returns the work that must stop."""
        return await self._store.extend(worker, held, self._clock.now() + self._lease_ms)

    async def playbook(self, playbook: str) -> bytes:
        """Return a pinned tree by its content hash."""
        data = await self._store.canonical(playbook)
        if data is None:
            raise InvalidInput(f"there is no playbook with the content hash {playbook} in this store")
        return data

    def follow(self, execution_id: str, after: int = 0) -> AsyncIterator[Event]:
        """Yield the events of an execution as they come, until it has ended."""
        return self.followers.follow(execution_id, after)

    async def take_over(self, execution_id: str) -> int:
        """Take back every lease of an execution whose driver is dead; return how many."""
        count = await self._store.expire(execution_id, self._clock.now())
        if count:
            await self.lease_reaper.expire()
        return count

    async def take_back(self, worker: str) -> int:
        """Take back every lease of a worker whose process is dead; return how many."""
        count = await self._store.disown(worker, (), self._clock.now())
        if count:
            await self.lease_reaper.expire()
        return count

    def reconciler(self, derived: DerivedTables) -> Reconciler:
        """Return the reconciler, which repairs stuck executions."""
        from noetl.server.background.reconciler import Reconciler  # a run that is over in a moment never needs it

        parts = (self._store, derived, self._plans, self.sequencer, self._clock)
        return Reconciler(*parts, holder=uuid4().hex, every_s=self._liveness_s)

    async def _keep_alive(self) -> None:
        await self._clock.sleep(self._liveness_s)
        if self._derived is not None:
            await self.reconciler(self._derived).run()

    async def _age(self) -> None:
        from noetl.server.background.flow.ageing import Ageing  # likewise

        if self._derived is not None:
            every_s = self._ageing_s
            await Ageing(self._store, self._derived, self._clock, holder=uuid4().hex, every_s=every_s).run()

    async def _watch(self) -> None:
        """Notice what other processes commit to the same store."""
        version, left = -1, frozenset[str]()
        while True:
            try:
                now = await self._store.version()
                if version not in (-1, now) or left:
                    # Messages are taken when they are seen twice: their own process is mostly quicker.
                    left = await self.sequencer.gather(left)
                if now != version:  # also at first: what came before that look may have been missed
                    version = now
                    self.sequencer.look()
                    self.followers.wake_all()
                    self.completion.doubt_all()
            except NoetlError as error:
                _log.log(log_level(error), "the store cannot be watched: %s", error)
            # A message that was seen once is checked again soon, with or without a signal.
            await self._doorbell.heard(min(self._look_s, _LOOK_AGAIN_S) if left else self._look_s)


class LocalSubscription(Subscription):
    """Worker in this process: receives work, and stops work that a commit removes."""

    __slots__ = ("_hooks", "_stop")

    def __init__(
        self, sequencer: Sequencer, worker: str, takes: Takes, capacity: int, deliver: Deliver, stop: Stop
    ) -> None:
        kept = kept_slots(capacity)
        super().__init__(worker, takes, capacity, deliver, sequencer.request, sequencer.withdraw, kept=kept)
        self._stop = stop
        self._hooks = sequencer.hooks
        self._hooks.register(drop=self._dropped)
        sequencer.request(self)

    def _dropped(self, commit: Commit) -> None:
        self._stop(commit.dropped)

    def close(self) -> None:
        super().close()
        self._hooks.remove(self._dropped)


def _tell_of_end(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.critical("%s has ended and must be started again", task.get_name(), exc_info=error)
