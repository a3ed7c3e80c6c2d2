"""The worker: subscribes to work, runs it, renews leases, reports, stops work.

A free slot claims its next work with the report of the last. Work whose lease was lost or cancelled is stopped without
a report. Tested in tests/unit/worker/test_loop.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from contextvars import ContextVar

from msgspec import DecodeError, ValidationError

from noetl.expr.runtime.running import RUNNING
from noetl.model.errors import NoetlError, log_level
from noetl.model.messages import Ending
from noetl.model.outcome import ErrorKind, failed
from noetl.model.work import Lease, kept_slots
from noetl.observe.logs.lines import working
from noetl.ports.work import Subscription
from noetl.worker.steps.playbook_cache import Playbooks
from noetl.worker.steps.reporter import FLUSH_MS, Reporter
from noetl.worker.steps.run_step import StepWork
from noetl.worker.tool_context import WorkerResources

_lease: ContextVar[tuple[str, int]] = ContextVar("noetl_lease", default=("", 0))
_log = logging.getLogger(__name__)


def current_lease() -> tuple[str, int]:
    """Return the work id and epoch of the current lease; empty outside of work."""
    return _lease.get()


class Worker:
    """Runs up to `capacity` work items at once, until drained or cancelled."""

    def __init__(
        self,
        name: str,
        shared: WorkerResources,
        *,
        pools: Sequence[str] = ("",),
        capacity: int = 32,
        heartbeat_s: float = 1.0,
    ) -> None:
        self.name = name
        self.heartbeat_s = heartbeat_s
        self._shared = shared
        self._pools = tuple(pools)
        self._capacity = capacity
        self._held: dict[str, Reporter] = {}  # by work id: its latest lease
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscription: Subscription | None = None
        self._changed = asyncio.Event()  # a slot became free
        self._draining = asyncio.Event()
        self.drained = asyncio.Event()  # set when it takes no more work and has none
        self._playbooks = Playbooks(shared)

    @property
    def busy(self) -> int:
        """Number of running work items."""
        return len(self._held)

    @property
    def draining(self) -> bool:
        """Whether it takes no more work."""
        return self._draining.is_set()

    @property
    def held(self) -> tuple[tuple[str, int], ...]:
        """The leases that this worker holds, by work id and epoch."""
        return tuple([(work_id, held.lease.epoch) for work_id, held in self._held.items()])

    def drain(self) -> None:
        """Take no more work; `run` returns when the running work has ended."""
        self._draining.set()

    def stop(self, work: Collection[str]) -> None:
        """Stop work that was cancelled; ids of work that is not here are ignored."""
        for work_id in work:
            held = self._held.get(work_id)
            if held is not None:
                held.stop()

    async def run(self) -> None:
        """Run until drained; if cancelled, end all work at once and report nothing."""
        keepers = [asyncio.create_task(part(), name=part.__qualname__) for part in (self._beat, self._flush)]
        try:
            self._subscription = self._shared.control.subscribe(
                self.name, self._pools, self._capacity, self._deliver, self.stop
            )
            await self._draining.wait()
            self._subscription.set_capacity(0)
            while self._held:
                self._changed.clear()
                await self._changed.wait()
            self.drained.set()
        finally:
            if self._subscription is not None:
                self._subscription.close()
            tasks = [*keepers, *self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    # One slot

    def _deliver(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            held = self._take(lease)
            if held is not None:
                task = asyncio.create_task(self._serve(held))
                held.task = task
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _take(self, lease: Lease) -> Reporter | None:
        """Hold a lease; return None if it is held already."""
        work_id = lease.work.work_id
        older = self._held.get(work_id)
        if older is not None:
            if older.lease.epoch == lease.epoch:
                return None  # delivered twice by a repeated answer
            older.stop()  # its lease expired; not if its last report is being sent, whose answer would be lost
        held = self._held[work_id] = Reporter(lease, self._shared, self.name)
        return held

    async def _serve(self, held: Reporter) -> None:
        """Do the work of a lease, then of the leases granted with each last report."""
        task = held.task
        following: Reporter | None = held
        try:
            while following is not None:
                held, following = following, None
                leases = await self._work(held)
                self._forget(held)
                for lease in leases:
                    if following is None:
                        following = self._take(lease)
                        if following is not None:
                            following.task = task
                    else:
                        self._deliver([lease])
        finally:
            self._forget(held)
            self._changed.set()
            if self._subscription is not None and not self._draining.is_set():
                self._subscription.set_capacity(self._capacity - len(self._held))

    async def _work(self, held: Reporter) -> list[Lease]:
        """Do the work of one lease; return the new leases from its last report."""
        work = held.lease.work
        _lease.set((work.work_id, held.lease.epoch))
        working.set(work)
        RUNNING.begin(work.execution_id)
        try:
            plan = self._playbooks.cached(work) or await self._playbooks.fetched(work)
            held.describe(plan)
            return await StepWork(self._shared, plan, held, self._want).run()
        except asyncio.CancelledError:
            _log.info("stopped %s", work.work_id)
            raise
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must reach the execution
            return await self._give_up(held, error)

    def _forget(self, held: Reporter) -> None:
        work_id = held.lease.work.work_id
        if self._held.get(work_id) is held:
            del self._held[work_id]

    def _want(self) -> int:
        """Return how much work is wanted in the place of work that ends."""
        is_full = len(self._held) > self._capacity - kept_slots(self._capacity)
        return 0 if self._draining.is_set() or is_full else 1

    async def _give_up(self, held: Reporter, error: Exception) -> list[Lease]:
        _log.error("the worker failed on %s", held.lease.work.work_id, exc_info=error)
        is_poison = isinstance(error, DecodeError | ValidationError)  # its input cannot be read
        kind: ErrorKind = "parse" if is_poison else "unknown"
        failure = failed(kind, f"the worker failed: {type(error).__name__}: {error}", code="WORKER").error
        assert failure is not None
        details = {"kind": failure.kind, "message": failure.message, "code": failure.code}
        return await held.end(Ending("error", error=details), {}, self._want())

    # Leases and progress

    async def _beat(self) -> None:
        while True:
            await self._shared.clock.sleep(self.heartbeat_s)
            await self.look()

    async def look(self) -> None:
        """Renew the leases once, and stop work whose lease is lost."""
        held = self.held
        if not held:
            return
        try:
            lost = set(await self._shared.control.heartbeat(self.name, held))
        except (NoetlError, OSError) as error:
            _log.log(log_level(error), "the leases could not be renewed: %s", error)
            return
        for work_id, epoch in held:
            found = self._held.get(work_id) if work_id in lost else None
            if found is not None and found.lease.epoch == epoch:
                found.stop()

    async def _flush(self) -> None:
        while True:
            await self._shared.clock.sleep(FLUSH_MS / 2000)
            now = self._shared.clock.now()
            for held in list(self._held.values()):
                if not held.finishing and held.due(now):
                    try:
                        await held.flush()
                    except NoetlError as error:
                        _log.log(log_level(error), "progress of %s is not reported: %s", held.lease.work.work_id, error)
