"""Collect the records of one lease and send them in order, without secrets.

Progress is sent periodically, the end once. A report that could not be delivered is sent again under the same id, by
which the control plane deduplicates. Tested in tests/unit/worker/steps/test_run_step.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final

from noetl.model.errors import Conflict, NoetlError, StoreUnavailable, log_level
from noetl.model.messages import Ending, ItemEnd, Record, Report, Row, Suspension
from noetl.model.work import Lease
from noetl.observe.logs.work import WorkLog, work_log
from noetl.ports.work import Answer, resolve
from noetl.worker.steps.playbook_cache import PlannedStep
from noetl.worker.tool_context import Log, WorkerResources

FLUSH_MS: Final = 200  # how long something may stay unreported
_NOTHING: Final[Mapping[str, Any]] = {}
_AGAIN_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0)

_log = logging.getLogger(__name__)


class Reporter:
    """The reports of one lease, and the task that runs its work."""

    task: asyncio.Task[None] | None = None
    log: WorkLog | None = None  # None: no level of its events is on
    snapshot: Callable[[], Mapping[str, Any] | None] | None = None  # None: it has ended, and its last report follows
    runtime: Mapping[str, Any] = _NOTHING  # versions of what runs the work, for the first report
    finishing = False  # the last report is being sent: too late to stop
    _since: int | None = None  # when what waits to be reported came, as far as that was looked at
    _number = 0
    _order: asyncio.Lock | None = None  # from the first progress on; most work sends nothing but its end

    def __init__(self, lease: Lease, shared: WorkerResources, worker: str) -> None:
        self.lease = lease
        self.records: list[Record] = []  # pipelines write here
        self.sources: dict[object, Callable[[], Iterable[Record]]] = {}  # logs of what runs now
        self._shared = shared
        self._worker = worker
        self._items: list[ItemEnd] = []

    def describe(self, plan: PlannedStep) -> None:
        """Prepare what the first report says of its runtime, and the log."""
        self.runtime = plan.runtime
        self.log = work_log(self.lease, plan.playbook, plan.step, self._worker, self._shared.clock.now, plan.facts)

    def stop(self) -> None:
        """Stop the work, but not during its last report: its answer would be lost."""
        if not self.finishing and self.task is not None:
            self.task.cancel()

    def take_lines(self, source: object, lines: Log) -> None:
        """Take the log lines of an attempt that has ended."""
        self.records += lines.records()
        del self.sources[source]

    def begin(self) -> None:
        """Report soon that the work has begun: a time-out runs from here on."""
        self._waits()

    def add_item(self, item: ItemEnd) -> None:
        self._items.append(item)
        self._waits()

    def due(self, now: int) -> bool:
        """Return whether something has waited long enough."""
        self._pull()
        if self._since is None and self.records:
            self._since = min(now, self.records[0].at)
        return self._since is not None and now - self._since >= FLUSH_MS and not self.finishing

    async def flush(self, want: int = 0) -> list[Lease]:
        """Send pending progress; return new work if wanted and the lease ended."""
        async with self._in_order():
            self._pull()
            if self._since is None and not self.records:
                return []
            if self.snapshot is None or not self.records:
                return await self._send(want)
            pipeline = self.snapshot()
            return [] if pipeline is None else await self._send(want, pipeline=pipeline)

    async def suspend(self, suspension: Suspension, want: int = 0) -> list[Lease]:
        """Send all and a suspension; it ends the lease, unless a loop item suspends alone."""
        self.finishing = self.finishing or suspension.index is None
        async with self._in_order():
            self._pull()
            return await self._send(want, suspension=suspension)

    def end(self, ending: Ending, writes: Mapping[str, Any], want: int = 0) -> Awaitable[list[Lease]]:
        """Send everything and the end."""
        self.finishing = True
        if self._order is None and not self.sources:
            return self._send(want, ending, writes)
        return self._end_in_order(ending, writes, want)

    async def _end_in_order(self, ending: Ending, writes: Mapping[str, Any], want: int) -> list[Lease]:
        async with self._in_order():
            self._pull()
            return await self._send(want, ending, writes)

    async def record(self, rows: tuple[Row, ...]) -> bool:
        """Record claimed rows; return whether the lease is held and they may commit."""
        async with self._in_order():
            self._pull()
            await self._send(0, rows=rows)
        held = (self.lease.work.work_id, self.lease.epoch)
        try:
            return held[0] not in await self._shared.control.heartbeat(self._worker, [held])
        except (NoetlError, OSError) as error:
            _log.log(log_level(error), "a claim of %s is given up: %s", held[0], error)
            return False

    def _in_order(self) -> asyncio.Lock:
        if self._order is None:
            self._order = asyncio.Lock()
        return self._order

    def _waits(self) -> None:
        if self._since is None:
            self._since = self._shared.clock.now()

    def _pull(self) -> None:
        for source in self.sources.values():
            self.records += source()

    def _send(
        self,
        want: int,
        ending: Ending | None = None,
        writes: Mapping[str, Any] = _NOTHING,
        suspension: Suspension | None = None,
        pipeline: Mapping[str, Any] | None = None,
        rows: tuple[Row, ...] = (),
    ) -> Coroutine[Any, Any, list[Lease]]:
        return self.deliver(self._report(ending, writes, suspension, pipeline, rows), want)

    def _report(
        self,
        ending: Ending | None,
        writes: Mapping[str, Any],
        suspension: Suspension | None = None,
        pipeline: Mapping[str, Any] | None = None,
        rows: tuple[Row, ...] = (),
    ) -> Report:
        records, self._since = tuple(self.records), None
        self.records.clear()
        items: tuple[ItemEnd, ...] = ()
        if self._items:
            items = tuple(self._items)
            self._items.clear()
        lease, worker = self.lease, self._worker
        run_id, chunk = lease.work.run_id, lease.work.chunk.chunk_id if lease.work.chunk is not None else None
        name, epoch = self._name(lease), lease.epoch
        runtime, self.runtime = self.runtime, _NOTHING
        report = Report(
            name, run_id, epoch, worker, records, writes, items, rows, chunk, suspension, ending, pipeline, runtime
        )
        return self._shared.secrets.message(report)

    def _name(self, lease: Lease) -> str:
        """Return the id of the next report; a retry has the same id."""
        self._number += 1
        return f"{lease.work.work_id}@{lease.epoch}.{self._number}"

    async def deliver(self, report: Report, want: int) -> list[Lease]:
        """Send a report until it is answered; return the new work of the answer."""
        tries, work, log = 0, self.lease.work, self.log
        if log is not None:
            log.reported(report)
        while True:
            try:
                leases = (await self._answer(report, want)).leases
                if log is not None and self.finishing:
                    log.acknowledged(report)
                return leases
            except (StoreUnavailable, Conflict, OSError) as error:
                if tries == 0:
                    _log.log(log_level(error), "a report of %s is sent again: %s", work.work_id, error)
                await self._shared.clock.sleep(_AGAIN_S[min(tries, len(_AGAIN_S) - 1)])
                tries += 1

    async def _answer(self, report: Report, want: int) -> Answer:
        answer: asyncio.Future[Answer | Exception] = asyncio.get_running_loop().create_future()
        self._shared.control.report(self.lease.work.execution_id, report, want, partial(resolve, answer))
        found = await answer
        if isinstance(found, Exception):
            raise found
        return found
