"""The worker: claims work, runs it, keeps its leases alive, reports, and stops what it must stop.

A slot that becomes free asks for its next work in the same call that reports the last. Work whose lease was lost or
cancelled is stopped without a report. Tested in tests/unit/worker/test_loop.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from msgspec import DecodeError, ValidationError

from noetl.model.errors import NoetlError
from noetl.model.messages import Ending, Report
from noetl.model.outcome import ErrorKind, failed
from noetl.model.work import Lease
from noetl.ports import Commit
from noetl.ports.work import Asking, NearControl
from noetl.worker.context import Equipment
from noetl.worker.holding import hold
from noetl.worker.lone import LoneWork, Tried
from noetl.worker.playbooks import Playbooks
from noetl.worker.reporter import FLUSH_MS, Reporter
from noetl.worker.run_step import StepWork

_CLAIM_S: Final = 10.0
_AGAIN_S: Final = 0.5
_MOST_IN_ROW: Final = 32  # pieces of work that are begun before others have their turn

Doing = Callable[[], Awaitable[list[Lease]]]

_log = logging.getLogger(__name__)


class Worker:
    """Runs up to `capacity` pieces of work at once, until it is drained or cancelled."""

    def __init__(
        self,
        name: str,
        shared: Equipment,
        *,
        pools: Sequence[str] = ("",),
        capacity: int = 32,
        heartbeat_s: float = 1.0,
        claim_s: float = _CLAIM_S,
    ) -> None:
        self.name = name
        self._shared = shared
        self._pools = tuple(pools)
        self._capacity = capacity
        self.heartbeat_s = heartbeat_s
        self._claim_s = claim_s
        self._near = shared.control if isinstance(shared.control, NearControl) else None
        self._held: dict[str, Reporter] = {}  # by work id: the lease of it that came last
        self._todo: deque[Reporter] = deque()  # what came and is not begun
        self._fresh: list[Reporter] = []  # likewise, and begun after that
        self._is_beginning = False
        self._tasks: set[asyncio.Task[None]] = set()  # what has to be waited for
        self._is_over = False
        self._asking: Asking | None = None
        self._room = asyncio.Event()
        self._draining = asyncio.Event()
        self._playbooks = Playbooks(shared)

    @property
    def busy(self) -> int:
        """How many pieces of work are under way."""
        return len(self._held)

    @property
    def held(self) -> tuple[tuple[str, int], ...]:
        """The leases in this worker's hands, by work id and epoch."""
        return tuple([(work_id, held.lease.epoch) for work_id, held in self._held.items()])

    def drain(self) -> None:
        """Take no more work; `run` comes back when what is under way has ended."""
        self._draining.set()
        self._room.set()

    def hear(self, commit: Commit) -> None:
        """Stop work at once that a commit of the same process has cancelled; else the next heartbeat tells."""
        for work_id in commit.dropped:
            held = self._held.get(work_id)
            if held is not None:
                held.stop()

    async def run(self) -> None:
        """Work until drained; cancelled, it ends at once what is under way and reports nothing."""
        keepers = [asyncio.create_task(part(), name=part.__qualname__) for part in (self._beat, self._flush)]
        until: list[asyncio.Task[Any]] = [asyncio.create_task(self._draining.wait())]
        try:
            if self._near is not None:
                self._asking = self._near.attend(self.name, self._pools, self._capacity, self._given)
            else:
                until.append(asyncio.create_task(self._claim(), name="claim"))
            await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
            self._ask_no_more()
            for task in until:
                await _cancel(task)
            while self._held:
                self._room.clear()
                await self._room.wait()
        finally:
            self._is_over = True
            self._ask_no_more()
            self._todo.clear()
            self._fresh.clear()
            for task in (*until, *keepers, *self._tasks):
                await _cancel(task)

    def _ask_no_more(self) -> None:
        if self._asking is not None:
            self._asking.end()
            self._asking = None

    async def _claim(self) -> None:
        """Ask again and again, of a control plane elsewhere."""
        while not self._draining.is_set():
            free = self._capacity - len(self._held)
            if free <= 0:
                self._room.clear()
                await self._room.wait()
                continue
            try:
                leases = await self._shared.control.claim(self.name, self._pools, free, self._claim_s)
            except (NoetlError, OSError) as error:
                _log.warning("no work can be claimed now: %s", error)
                await self._shared.clock.sleep(_AGAIN_S)
                continue
            self._go_on(leases)

    # One lease

    def _begin(self, lease: Lease) -> None:
        """Take a lease in hand; the work begins when whoever brought it is done."""
        held = self._take(lease)
        if held is None:
            return
        if self._near is None:
            self._spawn(held)
        else:
            self._todo.append(held)
            self._begin_soon(self._near)

    def _given(self, leases: Sequence[Lease]) -> None:
        """Take what was asked for; what a report of the same commit brings begins before it."""
        if self._is_over or self._near is None:
            self._go_on(leases)
            return
        self._fresh += [held for lease in leases if (held := self._take(lease)) is not None]
        self._begin_soon(self._near)

    def _begin_soon(self, near: NearControl) -> None:
        if not self._is_beginning:
            self._is_beginning = True
            asyncio.get_running_loop().call_soon(self._begin_some, near)

    def _take(self, lease: Lease) -> Reporter | None:
        work_id, all_held = lease.work.work_id, self._held
        if work_id in all_held:
            older = all_held[work_id]
            if older.lease.epoch == lease.epoch:
                return None  # handed out twice by a repeated answer
            if older.task is not None:
                older.task.cancel()  # its lease ran out, and the work came back to the same worker
        held = all_held[work_id] = Reporter(lease, self._shared, self.name)
        return held

    def _begin_some(self, near: NearControl) -> None:
        """Begin what has come, and what that brings; but not too much before others have their turn."""
        todo = self._todo
        if self._fresh:
            todo.extend(self._fresh)
            self._fresh.clear()
        try:
            for _ in range(_MOST_IN_ROW):
                if not todo:
                    break
                self._begin_one(todo.popleft(), near)
        finally:
            self._is_beginning = False
            if todo or self._fresh:
                self._begin_soon(near)

    def _begin_one(self, held: Reporter, near: NearControl) -> None:
        """Do plain work here and now, so that only its report is on its way; other work gets a task of its own."""
        if held.is_stopped:
            self._forget(held)
            self._has_room()
            return
        work, step = held.lease.work, None
        try:
            plan = self._playbooks.at_hand(work)
            if plan is not None and plan.is_plain:
                is_lone = plan.lone is not None and work.chunk is None and work.resume is None
                report: Report | Tried | None = LoneWork(self._shared, plan, held).done() if is_lone else None
                if not isinstance(report, Report):
                    step = StepWork(self._shared, plan, held, self._want)
                    report = step.begin(report)
                if report is not None:
                    held.last = (report, self._want())
                    if not near.report_soon(work.execution_id, *held.last, partial(self._told, held)):
                        self._told(held, None)
                    return
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must reach the execution
            self._spawn(held, partial(self._give_up, held, error))
        else:
            self._spawn(held, None if step is None else step.run)

    def _told(self, held: Reporter, leases: list[Lease] | None) -> None:
        """Go on after the report of plain work; None: it has to be delivered the usual way."""
        if leases is None:
            if not self._is_over:
                self._spawn(held, held.deliver_last)
            return
        self._forget(held)
        if leases:
            self._go_on(leases)
        else:
            self._has_room()

    def _go_on(self, leases: Sequence[Lease]) -> None:
        if not self._is_over:
            for lease in leases:
                self._begin(lease)
        elif self._near is not None:
            self._near.give_back(leases)

    def _spawn(self, held: Reporter, doing: Doing | None = None) -> None:
        """Do what has to be waited for in a task."""
        held.task = task = asyncio.create_task(self._serve(held, doing))
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, held))

    def _ended(self, held: Reporter, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._forget(held)  # it may have been stopped before it began
        self._has_room()

    async def _serve(self, held: Reporter, doing: Doing | None) -> None:
        """Do the work of a lease, and then of the one that its last report brought."""
        task, more = held.task, await self._served(held, doing)
        while more and self._near is None and not self._is_over:
            first, *others = more
            self._go_on(others)
            found = self._take(first)
            if found is None:
                return
            found.task = task
            more = await self._served(found, None)
        self._go_on(more)

    async def _served(self, held: Reporter, doing: Doing | None) -> list[Lease]:
        work = held.lease.work
        try:
            hold(work.work_id, held.lease.epoch)
            if doing is None:
                plan = self._playbooks.at_hand(work) or await self._playbooks.fetched(work)
                doing = StepWork(self._shared, plan, held, self._want).run
            return await doing()
        except asyncio.CancelledError:
            _log.info("stopped %s", work.work_id)
            return []
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must reach the execution
            return await self._give_up(held, error)
        finally:
            self._forget(held)

    def _forget(self, held: Reporter) -> None:
        work_id = held.lease.work.work_id
        if self._held.get(work_id) is held:
            del self._held[work_id]
        self._room.set()

    def _has_room(self) -> None:
        if self._asking is not None:
            self._asking.room(self._capacity - len(self._held))

    def _want(self) -> int:
        return 0 if self._draining.is_set() else 1

    async def _give_up(self, held: Reporter, error: Exception) -> list[Lease]:
        """Tell the control plane of a failure that is this worker's own."""
        _log.error("the worker failed on %s", held.lease.work.work_id, exc_info=error)
        poison = isinstance(error, DecodeError | ValidationError)  # what it was handed cannot be read
        kind: ErrorKind = "parse" if poison else "unknown"
        told = failed(kind, f"the worker failed: {type(error).__name__}: {error}", code="WORKER").error
        assert told is not None
        details = {"kind": told.kind, "message": told.message, "code": told.code}
        return await held.end(Ending("error", error=details), {}, self._want())

    async def _beat(self) -> None:
        """Keep the leases alive, and stop what is no longer held."""
        while True:
            await self._shared.clock.sleep(self.heartbeat_s)
            await self.look()

    async def look(self) -> None:
        """Keep the leases alive once, and stop what is no longer held."""
        held = self.held
        if not held:
            return
        try:
            lost = set(await self._shared.control.heartbeat(self.name, held))
        except (NoetlError, OSError) as error:
            _log.warning("the leases could not be kept alive: %s", error)
            return
        for work_id, epoch in held:
            found = self._held.get(work_id) if work_id in lost else None
            if found is not None and found.lease.epoch == epoch:
                found.stop()

    async def _flush(self) -> None:
        """Report progress that has waited long enough."""
        while True:
            await self._shared.clock.sleep(FLUSH_MS / 2000)
            now = self._shared.clock.now()
            for held in list(self._held.values()):
                if not held.finishing and held.due(now):
                    try:
                        await held.flush()
                    except NoetlError as error:
                        _log.warning("progress of %s is not reported: %s", held.lease.work.work_id, error)


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])
