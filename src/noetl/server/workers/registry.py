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
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

from msgspec.structs import replace

from noetl.model.errors import NoetlError, log_level
from noetl.model.messages import Report as Done
from noetl.model.work import Lease, WorkItem
from noetl.ports import Audit, Clock, Commit, Runtime, WorkerInfo, WorkQueue
from noetl.ports.work import Answer, resolve
from noetl.server.control_plane import LocalControlPlane
from noetl.server.feeds.reader import known_id
from noetl.server.problems import Refusal
from noetl.server.workers.presence import LocalWorker
from noetl.wire.session import ACK_MS, RECONNECT_MS, Claim, Drain, Held, Hello, Leases, Report, Stop, ToWorker

_log = logging.getLogger(__name__)
_CLAIMS_KEPT = 64  # per worker, for when one is sent again
_LONGEST_WAIT_S = 30.0
_MOST_WORK = 1_000
_SEEN_MS = 5_000  # how often a heartbeat is stored
_GONE_MS = 120_000  # a worker without work or heartbeat is forgotten after this
_SWEEP_S = 0.2
_LATE_MS = 1_000
_MOST_EPOCH = 2**53

Push = Callable[[ToWorker], None]  # sends a frame on the session
Reply = Callable[[Leases | Exception], bool]  # called once; False: the worker is gone


@dataclass(slots=True)
class LeaseGrant:
    """A lease that a worker holds."""

    lease: Lease | None  # None: granted by another server
    until: int
    ack_by: int | None = None


@dataclass(slots=True, eq=False)
class WorkerConnection:
    """A worker as this server knows it."""

    name: str
    hello: Hello
    registered_at: int
    push: Push | None = None  # to its session, while there is one
    grants: dict[Held, LeaseGrant] = field(default_factory=dict)
    claims: OrderedDict[str, asyncio.Task[list[Lease]]] = field(default_factory=OrderedDict)
    draining: bool = False
    heard_at: int = 0
    noted_at: int = 0

    def let_claims_go(self) -> None:
        """Cancel the waiting claims."""
        for claim in self.claims.values():
            claim.cancel()

    def is_back(self, registered_at: int) -> bool:
        """Return whether a worker whose session had closed has another one here."""
        return self.push is not None or self.registered_at != registered_at

    def extend_acks(self, ms: int) -> None:
        """Wait longer for acknowledgements."""
        for grant in self.grants.values():
            if grant.ack_by is not None:
                grant.ack_by += ms

    def open(self, hello: Hello, push: Push | None, now: int) -> None:
        """Note a hello, on a session or without one."""
        self.hello, self.push = hello, push
        self.registered_at = self.heard_at = self.noted_at = now


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
        self._connections: dict[str, WorkerConnection] = {}
        self._holders: dict[str, WorkerConnection] = {}  # work_id → who has it
        self._local: dict[str, LocalWorker] = {}  # workers in this process, which have no connection
        self._tasks: set[asyncio.Task[None]] = set()  # workers that leave, and reports that ask the store
        control.sequencer.hooks.register(drop=self._dropped)

    @property
    def workers(self) -> int:
        return len(self._connections) + len(self._local)

    @contextmanager
    def local_worker(self, name: str, worker: LocalWorker) -> Iterator[None]:
        """Count a worker of this process, and drain it with the others."""
        self._local[name] = worker
        try:
            yield
        finally:
            del self._local[name]

    # Coming and going

    async def hello(
        self, name: str, hello: Hello, push: Push | None = None, act: Audit = None
    ) -> tuple[WorkerConnection, list[str]]:
        """Admit a worker; return its connection, and the `held` work it must stop."""
        now = self._clock.now()
        known = self._connections.get(name)
        connection = self._connections[name] = known or WorkerConnection(name, hello, now)
        connection.open(hello, push, now)
        self._control.takes(name, hello.pools, hello.tags)
        try:
            await self._enlist(connection, now, act)
            await self._disown(connection, now, is_new=known is None)
            if known is None:
                _log.info("Worker %s connected: %s, capacity %d.", name, _pools(hello), hello.capacity)
            return connection, await self.heartbeat(connection, hello.held) if hello.held else []
        except BaseException:
            self.closed(connection, push)
            raise

    async def _enlist(self, connection: WorkerConnection, now: int, act: Audit) -> None:
        hello = connection.hello
        status = await self._runtime.seen(connection.name, now, len(hello.held))
        connection.draining = status == "draining"
        pools, count, state = ",".join(hello.pools), len(hello.held), "draining" if connection.draining else "ready"
        about = (hello.tags, hello.capacity, count, state, hello.host, hello.version)
        await self._runtime.enlist(WorkerInfo(connection.name, pools, *about, now, now, hello.credentials), act)

    async def _disown(self, connection: WorkerConnection, now: int, *, is_new: bool) -> None:
        if is_new:  # no server can deliver them any more
            count = await self._queue.disown(connection.name, connection.hello.held, now)
        else:  # unacknowledged leases may be in flight, or claimed again
            mine = set(connection.hello.held)
            lost = [held for held, grant in connection.grants.items() if grant.ack_by is None and held not in mine]
            lost = lost if connection.hello.acks else []
            self._take(connection, lost)
            count = await self._queue.abandon(connection.name, lost, now, now + self.lease_ms)
        if count:
            _log.info("%d leases that %s has and does not hold run out", count, connection.name)
            await self._control.lease_reaper.expire()

    def connection(self, name: str) -> WorkerConnection:
        """Return a worker that has said hello. Raises Refusal."""
        found = self._connections.get(name)
        if found is None:
            text = f"this server does not know the worker {name}"
            raise Refusal(409, "unknown-worker", text, fix="Say hello first, then again.")
        found.heard_at = self._clock.now()
        return found

    def closed(self, connection: WorkerConnection, push: Push | None) -> None:
        """Note that a session ended; its worker may soon reconnect, here or elsewhere."""
        if push is not None and connection.push == push:
            connection.push = None
            connection.let_claims_go()  # else work is leased for a closed session; a claim that comes again is a new one
            self._start(self._gone(connection, connection.registered_at))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _gone(self, connection: WorkerConnection, registered_at: int) -> None:
        await self._clock.sleep(self._reconnect_ms / 1000)
        if connection.is_back(registered_at):
            return
        had = dict(connection.grants)
        self._log_loss(connection)
        until = max((grant.until for grant in had.values()), default=0)  # a later one was renewed by another server
        self._forget(connection)
        try:
            await self._runtime.leave(connection.name, registered_at)
            if await self._queue.abandon(connection.name, list(had), self._clock.now(), until):
                await self._control.lease_reaper.expire()
        except NoetlError as error:
            _log.log(log_level(error), "the leases of %s stay until they run out: %s", connection.name, error)

    def _log_loss(self, connection: WorkerConnection) -> None:
        if connection.draining:
            _log.info("Worker %s left.", connection.name)
        else:
            count = len(connection.grants)
            _log.warning("Lost worker %s; %d work items that it had return to the queue.", connection.name, count)

    def _forget(self, connection: WorkerConnection) -> None:
        connection.let_claims_go()
        self._take(connection, list(connection.grants))
        self._connections.pop(connection.name, None)
        self._control.forget(connection.name)

    def known(self, name: str) -> WorkerConnection | None:
        """Return a worker, if it has said hello."""
        return self._connections.get(name)

    def holder(self, work_id: str) -> tuple[WorkerConnection, int] | None:
        """Return the worker that holds a work item here, and the epoch of its lease."""
        connection = self._holders.get(work_id)
        epoch = (
            next((held[1] for held in connection.grants if held[0] == work_id), None)
            if connection is not None
            else None
        )
        return None if connection is None or epoch is None else (connection, epoch)

    def work(self, connection: WorkerConnection, held: Held) -> WorkItem | None:
        """Return the work of a lease; None if another server granted it."""
        grant = connection.grants.get(held)
        return None if grant is None or grant.lease is None else grant.lease.work

    # Work

    async def claim(self, connection: WorkerConnection, claim: Claim) -> list[Lease]:
        """Lease work; a claim that is sent again gets the same leases."""
        task = connection.claims.get(claim.id) if claim.id else None
        if task is None or task.cancelled():
            task = asyncio.create_task(self._claim(connection, claim))
            connection.claims[claim.id or uuid4().hex] = task  # also without an id, so that it can be cancelled
            while len(connection.claims) > _CLAIMS_KEPT:
                connection.claims.popitem(last=False)
        try:
            leases = await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                return []  # the worker drains, or is gone
            raise
        return [lease for lease in leases if (lease.work.work_id, lease.epoch) in connection.grants]

    async def _claim(self, connection: WorkerConnection, claim: Claim) -> list[Lease]:
        if connection.draining:
            return []
        hello = connection.hello
        most, wait_s = max(1, min(claim.most, _MOST_WORK)), max(0.0, min(claim.wait_s, _LONGEST_WAIT_S))
        leases = await self._control.claim(
            connection.name, hello.pools, most, wait_s, hello.tags, is_for_idle=claim.is_for_idle
        )
        self._handed(connection, leases)
        return leases

    def report(self, connection: WorkerConnection, frame: Report, reply: Reply) -> None:
        """Apply a report, with new work in the same commit; `reply` once it is durable.

        A reply that returns False gives the new work back to the queue: the worker is gone.
        """
        try:
            known_id(frame.execution_id)
        except NoetlError as error:
            reply(error)
            return
        # Its id is the worker's own: one that another made up cannot pass for it, nor for what the system tells itself.
        report = replace(
            frame.report, worker=connection.name, message_id=f"{connection.name}/{frame.report.message_id}"
        )
        name = f"{frame.execution_id}:{report.run_id}" + (f":{report.chunk}" if report.chunk is not None else "")
        held = (name, report.epoch)
        if self._is_known(connection, held):
            self._offer(connection, frame, report, held, reply)
        else:
            self._start(self._offer_checked(connection, frame, report, held, reply))

    async def report_wait(self, connection: WorkerConnection, frame: Report) -> Leases:
        """Apply a report; if the caller is cancelled, new work returns to the queue."""
        future: asyncio.Future[Leases | Exception] = asyncio.get_running_loop().create_future()
        self.report(connection, frame, partial(resolve, future))
        try:
            answer = await future
        except asyncio.CancelledError:
            if not future.cancel() and not future.cancelled() and isinstance(answer := future.result(), Leases):
                self._give_back(connection, answer.leases)
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _offer_checked(
        self, connection: WorkerConnection, frame: Report, report: Done, held: Held, reply: Reply
    ) -> None:
        """Offer a report whose lease this server does not know, after asking the store."""
        try:
            is_held = await self.holds(connection, held)
        except Exception as error:  # noqa: BLE001  the worker gets it
            reply(error)
            return
        if is_held:
            self._offer(connection, frame, report, held, reply)
        else:  # of no lease: applied before, or late; never another worker's
            self._offer(connection, frame, replace(report, epoch=-1), None, reply)

    def _offer(
        self, connection: WorkerConnection, frame: Report, report: Done, held: Held | None, reply: Reply
    ) -> None:
        def answered(answer: Answer | Exception) -> bool:
            if isinstance(answer, Exception):
                return reply(answer)
            if held is not None and _is_over(report):
                self._take(connection, (held,))
            if answer.status == "duplicate":
                self._start(self._repeat(connection, frame, report.message_id, answer.leases, reply))
                return True
            status = answer.status if held is not None else "late"
            is_taken = reply(Leases(frame.id, tuple(answer.leases), status))
            if is_taken:
                self._handed(connection, answer.leases)
            return is_taken

        want = 0 if connection.draining else max(0, min(frame.want, _MOST_WORK))
        self._control.report(frame.execution_id, report, want, answered)

    async def _repeat(
        self, connection: WorkerConnection, frame: Report, message_id: str, leases: Sequence[Lease], reply: Reply
    ) -> None:
        """Answer a report that came again, with the leases that the worker still holds."""
        known = self._control.sequencer.outstanding.with_report(message_id)
        fresh = [lease for lease in leases if lease not in known]
        self._handed(connection, fresh)
        try:
            leases = [lease for lease in leases if await self.holds(connection, (lease.work.work_id, lease.epoch))]
        except Exception as error:  # noqa: BLE001  the worker gets it
            reply(error)
            return
        self._handed(connection, (lease for lease in leases if lease in known))
        if not reply(Leases(frame.id, tuple(leases), "duplicate")):
            self._give_back(connection, fresh)

    async def heartbeat(self, connection: WorkerConnection, held: Sequence[Held]) -> list[str]:
        """Renew leases; returns the work that must stop."""
        now = self._clock.now()
        until = now + self.lease_ms
        lost = set(await self._queue.extend(connection.name, held, until)) if held else set()
        for one in held:
            if one[0] in lost:
                self._take(connection, [one])
            else:
                self._has(connection, one, until)
        connection.heard_at = now
        if now - connection.noted_at >= _SEEN_MS:
            connection.noted_at = now
            status = await self._runtime.seen(connection.name, now, len(held))
            if status == "draining":
                connection.draining = True
        return sorted(lost)

    async def keep(self, connection: WorkerConnection, held: Sequence[Held], seconds: int | None) -> None:
        """Extend leases for longer than usual."""
        until = self._clock.now() + (seconds or 0) * 1000
        if held and seconds is not None and seconds * 1000 > self.lease_ms:
            lost = await self._queue.extend(connection.name, held, until)
            for one in held:
                if one[0] not in lost:
                    self._has(connection, one, until)

    def ack(self, connection: WorkerConnection, held: Iterable[Held]) -> None:
        """Note that leases have arrived."""
        for one in held:
            grant = connection.grants.get(one)
            if grant is not None:
                grant.ack_by = None

    async def release(self, connection: WorkerConnection, held: Sequence[Held]) -> None:
        """Return work to the queue that was not started."""
        mine = [one for one in held if await self.holds(connection, one)]
        self._take(connection, mine)
        await self._queue.release(mine, self._clock.now())
        self._control.sequencer.look()

    async def holds(self, connection: WorkerConnection, held: Held) -> bool:
        """Return whether a worker holds a lease now."""
        if self._is_known(connection, held):
            return True
        if not 0 < held[1] < _MOST_EPOCH:
            return False
        now = self._clock.now()
        if held[0] in await self._queue.extend(connection.name, [held], now + self.lease_ms):
            self._take(connection, [held])
            return False
        self._has(connection, held, now + self.lease_ms)
        return True

    def _is_known(self, connection: WorkerConnection, held: Held) -> bool:
        """Return whether a worker holds a lease for sure, without asking the store."""
        grant = connection.grants.get(held)
        return grant is not None and grant.until > self._clock.now()

    def drain(self, name: str) -> None:
        """Drain a worker: it gets no more work, and its waiting claims end empty."""
        local = self._local.get(name)
        if local is not None:
            local.drain()
        connection = self._connections.get(name)
        if connection is None:
            return
        connection.draining = True
        connection.let_claims_go()
        if connection.push is not None:
            connection.push(Drain())

    def answer_claims(self) -> None:
        """Answer all waiting claims."""
        for connection in self._connections.values():
            connection.let_claims_go()

    # What is remembered

    def _handed(self, connection: WorkerConnection, leases: Iterable[Lease]) -> None:
        ack_by = self._clock.now() + self._ack_ms if connection.hello.acks else None
        for lease in leases:
            work_id = lease.work.work_id
            connection.grants[work_id, lease.epoch] = LeaseGrant(lease, lease.until, ack_by)
            self._holders[work_id] = connection

    def _give_back(self, connection: WorkerConnection, leases: Sequence[Lease]) -> None:
        """Return leases to the queue that the worker did not get."""
        self._take(connection, [(lease.work.work_id, lease.epoch) for lease in leases])
        self._control.sequencer.outstanding.give_back(leases)

    def _has(self, connection: WorkerConnection, held: Held, until: int) -> None:
        grant = connection.grants.get(held)
        if grant is None:
            grant = connection.grants[held] = LeaseGrant(None, until)
        grant.until, grant.ack_by = until, None
        self._holders[held[0]] = connection

    def _take(self, connection: WorkerConnection, held: Iterable[Held]) -> None:
        for one in held:
            if connection.grants.pop(one, None) is not None and self._holders.get(one[0]) is connection:
                del self._holders[one[0]]

    def _dropped(self, commit: Commit) -> None:
        stops: dict[WorkerConnection, list[str]] = {}
        for work_id in commit.dropped:
            connection = self._holders.get(work_id)
            if connection is not None:
                stops.setdefault(connection, []).append(work_id)
        for connection, work in stops.items():
            self._take(connection, [held for held in connection.grants if held[0] in work])
            if connection.push is not None:
                connection.push(Stop(tuple(work)))

    async def run(self) -> None:
        """Return unacknowledged leases to the queue, until cancelled."""
        before = self._clock.now()
        while True:
            await self._clock.sleep(_SWEEP_S)
            now = self._clock.now()
            for connection in list(self._connections.values()):
                if now - before > _LATE_MS:  # what was acknowledged while this process did not run is not read yet
                    connection.extend_acks(now - before)
                self._sweep(connection, now)
            before = now

    def _sweep(self, connection: WorkerConnection, now: int) -> None:
        unseen = [held for held, grant in connection.grants.items() if grant.ack_by is not None and grant.ack_by <= now]
        back = [lease for held in unseen if (lease := connection.grants[held].lease) is not None]
        self._take(connection, unseen)
        if back:
            _log.info("%d leases that %s did not acknowledge go back to the queue", len(back), connection.name)
            self._control.sequencer.outstanding.give_back(back)
        self._take(connection, [held for held, grant in connection.grants.items() if grant.until <= now])
        if connection.push is None and not connection.grants and now - connection.heard_at > _GONE_MS:
            self._log_loss(connection)
            self._forget(connection)

    async def close(self) -> None:
        """Forget all workers but not their leases, which another server continues."""
        for task in self._tasks:
            task.cancel()
        for connection in list(self._connections.values()):
            self._forget(connection)


def _pools(hello: Hello) -> str:
    return "pool " + ", ".join(pool or "(default)" for pool in hello.pools)


def _is_over(report: Done) -> bool:
    return report.ending is not None or (report.suspension is not None and report.suspension.index is None)
