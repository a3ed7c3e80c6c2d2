"""Registry of connected workers: leases granted, acknowledged, to be stopped.

Sessions and HTTP routes behave the same because both use it. A claim that is sent again gets the same leases; leases
that are not acknowledged return to the queue; the leases of a session that closed and did not reconnect expire. The
leases in a worker's hello are all that it holds: its other leases, from a server that died or in a frame that never
arrived, expire then. The store decides which worker holds a lease; this cache saves queries. Tested in
tests/server/http/test_worker_socket.py and tests/server/workers/test_registry.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from uuid import uuid4

from msgspec.structs import replace

from noetl.model.errors import NoetlError
from noetl.model.messages import Report as Done
from noetl.model.work import Lease
from noetl.ports import Audit, Clock, Commit, Runtime, WorkerInfo, WorkQueue
from noetl.ports.work import Answer
from noetl.server.control_plane import LocalControlPlane
from noetl.server.feeds.reader import known_id
from noetl.server.problems import Refusal
from noetl.server.workers.connection import LeaseGrant, Push, WorkerConnection
from noetl.wire.session import ACK_MS, RECONNECT_MS, Claim, Drain, Held, Hello, Leases, Report, Stop

_log = logging.getLogger(__name__)
_CLAIMS_KEPT = 64  # per worker, for when one is sent again
_LONGEST_WAIT_S = 30.0
_MOST_WORK = 1_000
_SEEN_MS = 5_000  # how often a heartbeat is stored
_GONE_MS = 120_000  # a worker without work or heartbeat is forgotten after this
_SWEEP_S = 0.2
_MOST_EPOCH = 2**53

Reply = Callable[[Leases | Exception], bool]  # called once; False: the worker is gone


class WorkerRegistry:
    """The workers that are connected to this server."""

    def __init__(
        self,
        control: LocalControlPlane,
        queue: WorkQueue,
        runtime: Runtime,
        clock: Clock,
        *,
        lease_ms: int,
        ack_ms: int = ACK_MS,
        reconnect_ms: int = RECONNECT_MS,
    ) -> None:
        self._control = control
        self._queue = queue
        self._runtime = runtime
        self._clock = clock
        self.lease_ms = lease_ms
        self._ack_ms = ack_ms
        self._reconnect_ms = reconnect_ms
        self._hands: dict[str, WorkerConnection] = {}
        self._holders: dict[str, WorkerConnection] = {}  # work_id → who has it
        self._tasks: set[asyncio.Task[None]] = set()  # workers that leave, and reports that ask the store
        control.sequencer.hooks.register(drop=self._dropped)

    @property
    def workers(self) -> int:
        return len(self._hands)

    # Coming and going

    async def hello(
        self, name: str, hello: Hello, push: Push | None = None, act: Audit = None
    ) -> tuple[WorkerConnection, list[str]]:
        """Admit a worker; return its connection, and the `held` work it must stop."""
        now = self._clock.now()
        known = self._hands.get(name)
        hand = self._hands[name] = known or WorkerConnection(name, hello, now)
        hand.hello, hand.push, hand.registered_at, hand.heard_at, hand.noted_at = hello, push, now, now, now
        self._control.takes(name, hello.pools, hello.tags)
        try:
            await self._enlist(hand, now, act)
            await self._disown(hand, now, is_new=known is None)
            return hand, await self.heartbeat(hand, hello.held) if hello.held else []
        except BaseException:
            self.closed(hand, push)
            raise

    async def _enlist(self, hand: WorkerConnection, now: int, act: Audit) -> None:
        hello = hand.hello
        status = await self._runtime.seen(hand.name, now, len(hello.held))
        hand.draining = status == "draining"
        await self._runtime.enlist(
            WorkerInfo(
                hand.name,
                ",".join(hello.pools),
                hello.tags,
                hello.capacity,
                len(hello.held),
                "draining" if hand.draining else "ready",
                hello.host,
                hello.version,
                now,
                now,
            ),
            act,
        )

    async def _disown(self, hand: WorkerConnection, now: int, *, is_new: bool) -> None:
        if is_new:  # no server can deliver them any more
            count = await self._queue.disown(hand.name, hand.hello.held, now)
        else:  # unacknowledged leases may be in flight, or claimed again
            mine = set(hand.hello.held)
            lost = [held for held, given in hand.given.items() if given.ack_by is None and held not in mine]
            lost = lost if hand.hello.acks else []
            self._take(hand, lost)
            count = await self._queue.abandon(hand.name, lost, now, now + self.lease_ms)
        if count:
            _log.info("%d leases that %s has and does not hold run out", count, hand.name)
            await self._control.lease_reaper.expire()

    def hand(self, name: str) -> WorkerConnection:
        """Return a worker that has said hello. Raises Refusal."""
        found = self._hands.get(name)
        if found is None:
            raise Refusal(
                409,
                "unknown-worker",
                f"this server does not know the worker {name}",
                fix="Say hello first, then again.",
            )
        found.heard_at = self._clock.now()
        return found

    def closed(self, hand: WorkerConnection, push: Push | None) -> None:
        """Note that a session ended; its worker may soon reconnect, here or elsewhere."""
        if push is not None and hand.push == push:
            hand.push = None
            hand.let_claims_go()  # else work is leased for a closed session; a claim that comes again is a new one
            self._start(self._gone(hand, hand.registered_at))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _gone(self, hand: WorkerConnection, registered_at: int) -> None:
        until = self._clock.now() + self.lease_ms  # none of its leases lasts longer, unless renewed
        await self._clock.sleep(self._reconnect_ms / 1000)
        if hand.is_back(registered_at):
            return
        had = dict(hand.given)
        until = max(
            (given.until for given in had.values()), default=0
        )  # one that lasts longer was renewed by another server
        self._forget(hand)
        try:
            await self._runtime.leave(hand.name, registered_at)
            if await self._queue.abandon(hand.name, list(had), self._clock.now(), until):
                await self._control.lease_reaper.expire()
        except NoetlError as error:
            _log.warning("the leases of %s stay until they run out: %s", hand.name, error)

    def _forget(self, hand: WorkerConnection) -> None:
        hand.let_claims_go()
        self._take(hand, list(hand.given))
        self._hands.pop(hand.name, None)
        self._control.forget(hand.name)

    def known(self, name: str) -> WorkerConnection | None:
        """Return a worker, if it has said hello."""
        return self._hands.get(name)

    def holder(self, work_id: str) -> tuple[WorkerConnection, int] | None:
        """Return the worker that holds a work item here, and the epoch of its lease."""
        hand = self._holders.get(work_id)
        epoch = next((held[1] for held in hand.given if held[0] == work_id), None) if hand is not None else None
        return None if hand is None or epoch is None else (hand, epoch)

    # Work

    async def claim(self, hand: WorkerConnection, claim: Claim) -> list[Lease]:
        """Lease work; a claim that is sent again gets the same leases."""
        task = hand.claims.get(claim.id) if claim.id else None
        if task is None or task.cancelled():
            task = asyncio.create_task(self._claim(hand, claim))
            hand.claims[claim.id or uuid4().hex] = task  # also without an id, so that it can be cancelled
            while len(hand.claims) > _CLAIMS_KEPT:
                hand.claims.popitem(last=False)
        try:
            leases = await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                return []  # the worker drains, or is gone
            raise
        return [lease for lease in leases if (lease.work.work_id, lease.epoch) in hand.given]

    async def _claim(self, hand: WorkerConnection, claim: Claim) -> list[Lease]:
        if hand.draining:
            return []
        hello = hand.hello
        most, wait_s = max(1, min(claim.most, _MOST_WORK)), max(0.0, min(claim.wait_s, _LONGEST_WAIT_S))
        leases = await self._control.claim(hand.name, hello.pools, most, wait_s, hello.tags)
        self._handed(hand, leases)
        return leases

    def report(self, hand: WorkerConnection, frame: Report, reply: Reply) -> None:
        """Apply a report, with new work in the same commit; `reply` once it is durable.

        A reply that returns False gives the new work back to the queue: the worker is gone.
        """
        try:
            known_id(frame.execution_id)
        except NoetlError as error:
            reply(error)
            return
        # Its id is the worker's own: one that another made up cannot pass for it, nor for what the system tells itself.
        report = replace(frame.report, worker=hand.name, message_id=f"{hand.name}/{frame.report.message_id}")
        name = f"{frame.execution_id}:{report.run_id}" + (f":{report.chunk}" if report.chunk is not None else "")
        held = (name, report.epoch)
        if self._is_known(hand, held):
            self._offer(hand, frame, report, held, reply)
        else:
            self._start(self._offer_checked(hand, frame, report, held, reply))

    async def report_wait(self, hand: WorkerConnection, frame: Report) -> Leases:
        """Apply a report; if the caller is cancelled, new work returns to the queue."""
        future: asyncio.Future[Leases | Exception] = asyncio.get_running_loop().create_future()

        def reply(answer: Leases | Exception) -> bool:
            if future.done():
                return False
            future.set_result(answer)
            return True

        self.report(hand, frame, reply)
        try:
            answer = await future
        except asyncio.CancelledError:
            if not future.cancel() and not future.cancelled() and isinstance(answer := future.result(), Leases):
                self._give_back(hand, answer.leases)
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _offer_checked(
        self, hand: WorkerConnection, frame: Report, report: Done, held: Held, reply: Reply
    ) -> None:
        """Offer a report whose lease this server does not know, after asking the store."""
        try:
            is_held = await self.holds(hand, held)
        except Exception as error:  # noqa: BLE001  the worker gets it
            reply(error)
            return
        if is_held:
            self._offer(hand, frame, report, held, reply)
        else:  # of no lease: applied before, or late; never another worker's
            self._offer(hand, frame, replace(report, epoch=-1), None, reply)

    def _offer(self, hand: WorkerConnection, frame: Report, report: Done, held: Held | None, reply: Reply) -> None:
        def answered(answer: Answer | Exception) -> bool:
            if isinstance(answer, Exception):
                return reply(answer)
            if held is not None and _is_over(report):
                self._take(hand, (held,))
            if answer.status == "duplicate":
                self._start(self._repeat(hand, frame, report.message_id, answer.leases, reply))
                return True
            status = answer.status if held is not None else "late"
            is_taken = reply(Leases(frame.id, tuple(answer.leases), status))
            if is_taken:
                self._handed(hand, answer.leases)
            return is_taken

        want = 0 if hand.draining else max(0, min(frame.want, _MOST_WORK))
        self._control.report(frame.execution_id, report, want, answered)

    async def _repeat(
        self, hand: WorkerConnection, frame: Report, message_id: str, leases: Sequence[Lease], reply: Reply
    ) -> None:
        """Answer a report that came again, with the leases that the worker still holds."""
        known = self._control.sequencer.outstanding.with_report(message_id)
        fresh = [lease for lease in leases if lease not in known]
        self._handed(hand, fresh)
        try:
            leases = [lease for lease in leases if await self.holds(hand, (lease.work.work_id, lease.epoch))]
        except Exception as error:  # noqa: BLE001  the worker gets it
            reply(error)
            return
        self._handed(hand, (lease for lease in leases if lease in known))
        if not reply(Leases(frame.id, tuple(leases), "duplicate")):
            self._give_back(hand, fresh)

    async def heartbeat(self, hand: WorkerConnection, held: Sequence[Held]) -> list[str]:
        """Renew leases; returns the work that must stop."""
        now = self._clock.now()
        until = now + self.lease_ms
        lost = set(await self._queue.extend(hand.name, held, until)) if held else set()
        for one in held:
            if one[0] in lost:
                self._take(hand, [one])
            else:
                self._has(hand, one, until)
        hand.heard_at = now
        if now - hand.noted_at >= _SEEN_MS:
            hand.noted_at = now
            status = await self._runtime.seen(hand.name, now, len(held))
            if status == "draining":
                hand.draining = True
        return sorted(lost)

    async def keep(self, hand: WorkerConnection, held: Sequence[Held], seconds: int | None) -> None:
        """Extend leases for longer than usual."""
        until = self._clock.now() + (seconds or 0) * 1000
        if held and seconds is not None and seconds * 1000 > self.lease_ms:
            lost = await self._queue.extend(hand.name, held, until)
            for one in held:
                if one[0] not in lost:
                    self._has(hand, one, until)

    def ack(self, hand: WorkerConnection, held: Iterable[Held]) -> None:
        """Note that leases have arrived."""
        for one in held:
            given = hand.given.get(one)
            if given is not None:
                given.ack_by = None

    async def release(self, hand: WorkerConnection, held: Sequence[Held]) -> None:
        """Return work to the queue that was not started."""
        mine = [one for one in held if await self.holds(hand, one)]
        self._take(hand, mine)
        await self._queue.release(mine, self._clock.now())
        self._control.sequencer.look()

    async def holds(self, hand: WorkerConnection, held: Held) -> bool:
        """Return whether a worker holds a lease now."""
        if self._is_known(hand, held):
            return True
        if not 0 < held[1] < _MOST_EPOCH:
            return False
        now = self._clock.now()
        if held[0] in await self._queue.extend(hand.name, [held], now + self.lease_ms):
            self._take(hand, [held])
            return False
        self._has(hand, held, now + self.lease_ms)
        return True

    def _is_known(self, hand: WorkerConnection, held: Held) -> bool:
        """Return whether a worker holds a lease for sure, without asking the store."""
        given = hand.given.get(held)
        return given is not None and given.until > self._clock.now()

    def drain(self, name: str) -> None:
        """Drain a worker: it gets no more work, and its waiting claims end empty."""
        hand = self._hands.get(name)
        if hand is None:
            return
        hand.draining = True
        hand.let_claims_go()
        if hand.push is not None:
            hand.push(Drain())

    def answer_claims(self) -> None:
        """Answer all waiting claims."""
        for hand in self._hands.values():
            hand.let_claims_go()

    # What is remembered

    def _handed(self, hand: WorkerConnection, leases: Iterable[Lease]) -> None:
        ack_by = self._clock.now() + self._ack_ms if hand.hello.acks else None
        for lease in leases:
            work_id = lease.work.work_id
            hand.given[work_id, lease.epoch] = LeaseGrant(lease, lease.until, ack_by)
            self._holders[work_id] = hand

    def _give_back(self, hand: WorkerConnection, leases: Sequence[Lease]) -> None:
        """Return leases to the queue that the worker did not get."""
        self._take(hand, [(lease.work.work_id, lease.epoch) for lease in leases])
        self._control.sequencer.outstanding.give_back(leases)

    def _has(self, hand: WorkerConnection, held: Held, until: int) -> None:
        given = hand.given.get(held)
        if given is None:
            given = hand.given[held] = LeaseGrant(None, until)
        given.until, given.ack_by = until, None
        self._holders[held[0]] = hand

    def _take(self, hand: WorkerConnection, held: Iterable[Held]) -> None:
        for one in held:
            if hand.given.pop(one, None) is not None and self._holders.get(one[0]) is hand:
                del self._holders[one[0]]

    def _dropped(self, commit: Commit) -> None:
        stops: dict[WorkerConnection, list[str]] = {}
        for work_id in commit.dropped:
            hand = self._holders.get(work_id)
            if hand is not None:
                stops.setdefault(hand, []).append(work_id)
        for hand, work in stops.items():
            self._take(hand, [held for held in hand.given if held[0] in work])
            if hand.push is not None:
                hand.push(Stop(tuple(work)))

    async def run(self) -> None:
        """Return unacknowledged leases to the queue, until cancelled."""
        while True:
            await self._clock.sleep(_SWEEP_S)
            now = self._clock.now()
            for hand in list(self._hands.values()):
                self._sweep(hand, now)

    def _sweep(self, hand: WorkerConnection, now: int) -> None:
        unseen = [held for held, given in hand.given.items() if given.ack_by is not None and given.ack_by <= now]
        back = [lease for held in unseen if (lease := hand.given[held].lease) is not None]
        self._take(hand, unseen)
        if back:
            _log.info("%d leases that %s did not acknowledge go back to the queue", len(back), hand.name)
            self._control.sequencer.outstanding.give_back(back)
        self._take(hand, [held for held, given in hand.given.items() if given.until <= now])
        if hand.push is None and not hand.given and now - hand.heard_at > _GONE_MS:
            self._forget(hand)

    async def close(self) -> None:
        """Forget all workers but not their leases, which another server continues."""
        for task in self._tasks:
            task.cancel()
        for hand in list(self._hands.values()):
            self._forget(hand)


def _is_over(report: Done) -> bool:
    return report.ending is not None or (report.suspension is not None and report.suspension.index is None)
