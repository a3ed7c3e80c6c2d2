"""Gathers what happens on one lease and sends it in order, without secrets: progress now and then, the end once.

A report that could not be delivered is sent again under the same id, which the control plane knows. Tested in
tests/unit/worker/test_run_step.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from noetl.model.errors import Conflict, NoetlError, StoreUnavailable
from noetl.model.messages import Ending, ItemEnd, Record, Report, Row, Suspension
from noetl.model.work import Lease
from noetl.ports import Clock, ControlPlane
from noetl.worker.redact import Secrets

FLUSH_MS: Final = 200  # how long something may stay unreported
_AGAIN_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0)

_log = logging.getLogger(__name__)


class Reporter:
    """The reports of one lease."""

    def __init__(
        self, lease: Lease, control: ControlPlane, worker: str, clock: Clock, secrets: Secrets | None = None
    ) -> None:
        self.lease = lease
        self.sources: dict[object, Callable[[], Iterable[Record]]] = {}  # logs of what runs now
        self.snapshot: Callable[[], Mapping[str, Any]] | None = None
        self.finishing = False  # the last report is on its way: too late to stop
        self._control = control
        self._worker = worker
        self._clock = clock
        self._secrets = secrets or Secrets()
        self._records: list[Record] = []
        self._items: list[ItemEnd] = []
        self._since: int | None = None
        self._number = 0
        self._order = asyncio.Lock()

    def begin(self) -> None:
        """Have it told soon that the work has begun, though nothing came of it yet: a time-out runs from here on."""
        self._waits()

    def add(self, records: Iterable[Record]) -> None:
        before = len(self._records)
        self._records += records
        if len(self._records) > before:
            self._waits()

    def add_item(self, item: ItemEnd) -> None:
        self._items.append(item)
        self._waits()

    @property
    def unreported(self) -> bool:
        return self._since is not None

    def due(self, now: int) -> bool:
        """Tell whether something has waited long enough."""
        self._pull()
        return self._since is not None and now - self._since >= FLUSH_MS and not self.finishing

    async def flush(self, want: int = 0) -> list[Lease]:
        """Send progress, if there is any; gives new work where that was wanted and the lease is over by it."""
        async with self._order:
            self._pull()
            if self._since is None:
                return []
            pipeline = self.snapshot() if self.snapshot is not None and self._records else None
            return await self._send(want, pipeline=pipeline)

    async def suspend(self, suspension: Suspension, want: int = 0) -> list[Lease]:
        """Send everything and a suspension; it ends the lease, unless an item of a loop suspends alone."""
        self.finishing = self.finishing or suspension.index is None
        async with self._order:
            self._pull()
            return await self._send(want, suspension=suspension)

    async def end(self, ending: Ending, writes: Mapping[str, Any], want: int = 0) -> list[Lease]:
        """Send everything and the end."""
        self.finishing = True
        async with self._order:
            self._pull()
            return await self._send(want, ending=ending, writes=writes)

    async def record(self, rows: tuple[Row, ...]) -> bool:
        """Have the rows of a claim recorded; tells whether the lease is still ours, so that the claim may take effect."""
        async with self._order:
            self._pull()
            await self._send(0, rows=rows)
        held = (self.lease.work.work_id, self.lease.epoch)
        try:
            return held[0] not in await self._control.heartbeat(self._worker, [held])
        except (NoetlError, OSError) as error:
            _log.warning("a claim of %s is given up: %s", held[0], error)
            return False

    def _waits(self) -> None:
        if self._since is None:
            self._since = self._clock.now()

    def _pull(self) -> None:
        for source in self.sources.values():
            self.add(source())

    async def _send(self, want: int, **more: Any) -> list[Lease]:
        records, items = tuple(self._records), tuple(self._items)
        self._records, self._items, self._since = [], [], None
        self._number += 1
        work, epoch = self.lease.work, self.lease.epoch
        report = Report(
            f"{work.work_id}@{epoch}.{self._number}",
            work.run_id,
            epoch,
            self._worker,
            records,
            items=items,
            chunk=work.chunk.chunk_id if work.chunk is not None else None,
            **more,
        )
        report = self._secrets.message(report)
        tries = 0
        while True:
            try:
                return await self._control.report(work.execution_id, report, want)
            except (StoreUnavailable, Conflict, OSError) as error:
                if tries == 0:
                    _log.warning("a report of %s is sent again: %s", work.work_id, error)
                await self._clock.sleep(_AGAIN_S[min(tries, len(_AGAIN_S) - 1)])
                tries += 1
