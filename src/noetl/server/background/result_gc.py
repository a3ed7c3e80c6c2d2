"""Garbage collection of stored results: expired, out of scope, or orphaned.

`engine.collect` decides from the log alone, so it is safe to collect twice, again after a crash, or on two servers. A
tombstone with time and reason replaces the result while the log of its execution exists. Tested in
tests/unit/server/background/test_result_gc.py.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec

from noetl.engine.queries import result_gc
from noetl.engine.queries.result_gc import REMOVED, Owner, Terms, Verdict
from noetl.model.errors import NoetlError, log_level
from noetl.ports import BlobStore, Clock, EventLog, Selection

_log = logging.getLogger(__name__)
_PAGE: Final = 500
_BATCH: Final = 5_000  # results judged together, so that a log is read once for many of them
_MOST_KIN: Final = 64
_MOST_REMEMBERED: Final = 200_000
_UNDER_WAY: Final = ("pending", "running", "waiting", "paused")
_FIRST_S: Final = 60.0
Stored = tuple[str, Mapping[str, Any]]


class Gone(msgspec.Struct, frozen=True):
    """A stored result that was removed, or would be in a dry run."""

    ref: str
    bytes: int
    cause: str
    why: str


class ResultGC:
    """Scan a blob store periodically and remove garbage."""

    def __init__(self, log: EventLog, blobs: BlobStore, clock: Clock, terms: Terms, every_s: float = 0) -> None:
        self._log = log
        self._blobs = blobs
        self._clock = clock
        self._terms = terms
        self._every_s = every_s
        self._above: dict[str, str | None] = {}  # cache: execution → the one it came from, which never changes
        self._asked: set[str] = set()  # ended executions whose logs were read in this scan
        self._sound: set[str] = set()  # and in earlier scans: the log names all of their results

    async def run(self) -> None:
        """Collect periodically until cancelled; do nothing without an interval."""
        wait = min(self._every_s, _FIRST_S)
        while self._every_s > 0:
            await self._clock.sleep(wait)
            wait = self._every_s
            try:
                gone = await self.collect()
            except (NoetlError, OSError) as error:
                _log.log(log_level(error), "Stored results could not be collected: %s", error)
            else:
                if gone:
                    _log.info("Removed %d stored results, %d bytes", len(gone), sum(one.bytes for one in gone))

    async def collect(self, *, dry_run: bool = False) -> list[Gone]:
        """Remove garbage and return what was removed. A dry run removes nothing."""
        for cache in (self._above, self._sound):
            if len(cache) > _MOST_REMEMBERED:
                cache.clear()
        self._asked.clear()
        under_way: tuple[set[str], set[str]] | None = None
        gone: list[Gone] = []
        async for batch in self._batches():
            if under_way is None:  # read once there is a result: there may be many executions
                under_way = await self._under_way()
            gone += await self._collect(batch, *under_way, dry_run=dry_run)
        if not dry_run:
            self._sound |= self._asked
            await self._blobs.tidy(self._clock.now() - self._terms.grace_ms)
        return gone

    async def _collect(self, batch: list[Stored], live: set[str], kept: set[str], *, dry_run: bool) -> list[Gone]:
        now, terms = self._clock.now(), self._terms
        owners: dict[str, Owner] = {}
        doubtful: dict[str, list[Stored]] = {}
        gone: list[Gone] = []
        for ref, meta in batch:
            owner = await self._owner(ref, live, owners)
            found = result_gc.verdict(meta, owner, now, terms)
            if ref in kept and (found is None or found.cause != "expired"):
                continue
            if REMOVED in meta:  # a tombstone; it is removed with the log
                if owner is not None and not owner.logged and not owner.live and not dry_run:
                    await self._blobs.delete([ref])
            elif found is not None:
                gone.append(await self._remove(ref, meta, found, owner, dry_run=dry_run))
            elif (
                owner is not None
                and owner.execution_id not in self._sound
                and result_gc.may_be_unlogged(meta, owner, now, terms)
            ):
                doubtful.setdefault(owner.execution_id, []).append((ref, meta))
        for execution_id, some in doubtful.items():
            named = await self._named(execution_id)
            for ref, meta in some:
                if ref not in named:
                    gone.append(await self._remove(ref, meta, result_gc.unlogged(), None, dry_run=dry_run))
        self._asked.update(doubtful)
        return gone

    async def _remove(
        self, ref: str, meta: Mapping[str, Any], found: Verdict, owner: Owner | None, *, dry_run: bool
    ) -> Gone:
        if not dry_run:
            if owner is not None and owner.logged:
                tombstone = {"at": self._clock.now(), "why": found.why}
                await self._blobs.put(ref, b"", {**meta, REMOVED: tombstone})
            else:
                await self._blobs.delete([ref])
        return Gone(ref, int(meta.get("bytes") or 0), found.cause, found.why)

    async def _owner(self, ref: str, live: set[str], known: dict[str, Owner]) -> Owner | None:
        execution_id = result_gc.owner_of(ref)
        if execution_id is None:
            return None
        if execution_id not in known:
            known[execution_id] = await self._look(execution_id, live)
        return known[execution_id]

    async def _look(self, execution_id: str, live: set[str]) -> Owner:
        """Return whether an execution, its ancestors and its relatives have ended."""
        row = await self._log.execution(execution_id)
        family = await self._line(execution_id)
        if row is None:
            return Owner(execution_id, logged=False, live=family[-1] in live)
        rows = [row, *[await self._log.execution(one) for one in family[1:]]]
        ends = [found.get("ended_at") for found in rows if found is not None]
        if family[-1] in live or None in ends:
            return Owner(execution_id, logged=True, live=True)
        return Owner(execution_id, logged=True, ended_at=max(int(end) for end in ends if end is not None))

    async def _under_way(self) -> tuple[set[str], set[str]]:
        """Return roots with running executions, and results whose log is gone."""
        live: set[str] = set()
        kept: set[str] = set()
        before: str | None = None
        while rows := await self._log.executions(Selection(status=_UNDER_WAY, before=before, limit=_PAGE)):
            for row in rows:
                before = str(row["execution_id"])
                family = await self._line(before)
                live.add(family[-1])
                if len(family) > 1 and not await self._log.read(family[-1], 0, 1):
                    kept |= await self._named(before)
        return live, kept

    async def _line(self, execution_id: str) -> list[str]:
        """Return an execution and its ancestors with logs; the root is the last."""
        found = [execution_id]
        while len(found) < _MOST_KIN:
            at = found[-1]
            if at not in self._above:
                first = await self._log.read(at, 0, 1)
                if not first:
                    break
                self._above[at] = result_gc.above(first[0])
            up = self._above[at]
            if up is None:
                break
            found.append(up)
        return found

    async def _named(self, execution_id: str) -> set[str]:
        found: set[str] = set()
        after = 0
        while events := await self._log.read(execution_id, after, _PAGE):
            found |= result_gc.addresses(events)
            after = events[-1].seq
        return found

    async def _batches(self) -> AsyncIterator[list[Stored]]:
        batch: list[Stored] = []
        async for one in self._blobs.stored():
            batch.append(one)
            if len(batch) >= _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch
