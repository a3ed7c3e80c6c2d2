"""The worker: claims work, runs it, keeps its leases alive, reports, and stops what it must stop.

A slot that becomes free asks for its next work in the same call that reports the last. Work whose lease was lost or
cancelled is stopped without a report. Tested in tests/unit/worker/test_loop.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

from msgspec import DecodeError, ValidationError

from noetl.model.errors import NoetlError
from noetl.model.messages import Ending
from noetl.model.outcome import ErrorKind, failed
from noetl.model.work import Lease
from noetl.ports import Commit
from noetl.worker.context import Equipment
from noetl.worker.holding import hold
from noetl.worker.playbooks import Playbooks
from noetl.worker.reporter import FLUSH_MS, Reporter
from noetl.worker.run_step import StepWork

_CLAIM_S: Final = 10.0
_AGAIN_S: Final = 0.5

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
        self._held: dict[tuple[str, int], Reporter] = {}
        self._latest: dict[str, Reporter] = {}  # by work id: the lease of it that came last
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
        return tuple(self._held)

    def drain(self) -> None:
        """Take no more work; `run` comes back when what is under way has ended."""
        self._draining.set()
        self._room.set()

    def hear(self, commit: Commit) -> None:
        """Stop work at once that a commit of the same process has cancelled; else the next heartbeat tells."""
        for (work_id, _), held in self._held.items() if commit.dropped else ():
            if work_id in commit.dropped:
                held.stop()

    async def run(self) -> None:
        """Work until drained; cancelled, it ends at once what is under way and reports nothing."""
        keepers = [asyncio.create_task(part(), name=part.__qualname__) for part in (self._beat, self._flush)]
        claiming = asyncio.create_task(self._claim(), name="claim")
        draining = asyncio.create_task(self._draining.wait())
        try:
            await asyncio.wait({claiming, draining}, return_when=asyncio.FIRST_COMPLETED)
            await _cancel(claiming)
            while self._held:
                await asyncio.wait([held.task for held in self._held.values() if held.task is not None])
        finally:
            running = [held.task for held in self._held.values() if held.task is not None]
            for task in (claiming, draining, *keepers, *running):
                await _cancel(task)

    async def _claim(self) -> None:
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
            for lease in leases:
                self._begin(lease)

    def _begin(self, lease: Lease) -> None:
        held = self._take(lease)
        if held is not None:
            held.task = asyncio.create_task(self._serve(held))

    def _take(self, lease: Lease) -> Reporter | None:
        key = (lease.work.work_id, lease.epoch)
        if key in self._held:
            return None  # handed out twice by a repeated answer
        older = self._latest.get(key[0])
        if older is not None and older.task is not None:
            older.task.cancel()  # its lease ran out, and the work came back to the same worker
        held = self._held[key] = self._latest[key[0]] = Reporter(lease, self._shared, self.name)
        return held

    async def _serve(self, held: Reporter | None) -> None:
        """Do the work of a lease, and then of the one that its last report brought."""
        while held is not None:
            task, leases = held.task, await self._served(held)
            held = self._take(leases[0]) if leases else None
            if held is not None:
                held.task = task
            for lease in leases[1:]:
                self._begin(lease)

    async def _served(self, held: Reporter) -> list[Lease]:
        work = held.lease.work
        try:
            hold(work.work_id, held.lease.epoch)
            plan = self._playbooks.at_hand(work) or await self._playbooks.fetched(work)
            return await StepWork(self._shared, plan, held, self._want).run()
        except asyncio.CancelledError:
            _log.info("stopped %s", work.work_id)
            return []
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must reach the execution
            _log.exception("the worker failed on %s", work.work_id)
            return await self._give_up(held, error)
        finally:
            del self._held[work.work_id, held.lease.epoch]
            if self._latest.get(work.work_id) is held:
                del self._latest[work.work_id]
            self._room.set()

    def _want(self) -> int:
        return 0 if self._draining.is_set() else 1

    async def _give_up(self, held: Reporter, error: Exception) -> list[Lease]:
        """Tell the control plane of a failure that is this worker's own."""
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
        held = list(self._held)
        if not held:
            return
        try:
            lost = set(await self._shared.control.heartbeat(self.name, held))
        except (NoetlError, OSError) as error:
            _log.warning("the leases could not be kept alive: %s", error)
            return
        for key in held:
            found = self._held.get(key)
            if key[0] in lost and found is not None:
                found.stop()

    async def _flush(self) -> None:
        """Report progress that has waited long enough."""
        while True:
            await self._shared.clock.sleep(FLUSH_MS / 2000)
            now = self._shared.clock.now()
            for held in list(self._held.values()):
                if held.due(now):
                    try:
                        await held.flush()
                    except NoetlError as error:
                        _log.warning("progress of %s is not reported: %s", held.lease.work.work_id, error)


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])
