"""Exports the traces of what a server commits, beside it and never in its way.

A share of the executions is followed from commit to commit: each server sends the spans that end with its own commits, so
several servers send each span once. Failed and slow executions that were not followed are made of the log when they have
ended. If more waits than the queue holds, commits are skipped and their spans are lost. Tested in
tests/unit/observe/traces/test_exporter.py and tests/observe/test_traces.py.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from noetl.engine.plan.plan import Plan
from noetl.model.commit import Commit
from noetl.model.errors import NoetlError
from noetl.model.events import Event
from noetl.observe.traces.spans import Span, TraceFold
from noetl.settings import TracingSettings
from noetl.trace_context import trace_of

MOST_WAITING: Final = 5_000  # commits
_MOST_FOLLOWED: Final = 20_000  # executions
_PAGE: Final = 2_000  # events that are read at once
_TOGETHER: Final = 512  # spans that are sent at once
_LATER_S: Final = 0.2  # spans are gathered for this long
_FLUSH_S: Final = 2.0  # at the end
_KNOWN: Final = 500  # durations that are remembered of a playbook
_OF: Final = 100  # executions, of which one may be slow
_MOST_UNSPENT: Final = 1_000  # so that ten slow ones in a row are traced

_log = logging.getLogger(__name__)


class Events(Protocol):
    """The log that traces are made of."""

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]: ...


class _Sender(Protocol):
    async def send(self, spans: Sequence[Span]) -> None: ...


class _Known:
    """The last durations of a playbook, in milliseconds."""

    def __init__(self) -> None:
        self.last: deque[float] = deque()
        self.sorted: list[float] = []
        self.unspent = 0  # executions since the start; a slow one costs a hundred of them


class Durations:
    """What is known of each playbook, to find its slow executions."""

    def __init__(self) -> None:
        self._of: dict[str, _Known] = {}

    def is_slow(self, path: str, duration: float) -> bool:
        """Return whether a duration is above the 99th percentile; remember it.

        No more than one in a hundred is, also while executions become slower.
        """
        known = self._of.get(path) or self._of.setdefault(path, _Known())
        known.unspent = min(known.unspent + 1, _MOST_UNSPENT)
        slow = known.unspent > _OF and bisect_left(known.sorted, duration) >= len(known.sorted) * 0.99
        known.unspent -= _OF * slow
        known.last.append(duration)
        insort(known.sorted, duration)
        if len(known.last) > _KNOWN:
            del known.sorted[bisect_left(known.sorted, known.last.popleft())]
        while len(self._of) > _KNOWN:
            del self._of[next(iter(self._of))]
        return slow


class TraceExporter:
    """Follows executions, and sends the spans of those that are sampled."""

    def __init__(
        self, log: Events, plan: Callable[[str], Awaitable[Plan]], sender: _Sender, settings: TracingSettings
    ) -> None:
        self._store, self._plan, self._sender, self._settings = log, plan, sender, settings
        self._followed: dict[str, TraceFold | None] = {}  # None: it is not sampled
        self._waiting: deque[Commit] = deque()
        self._spans: list[Span] = []
        self._wake, self._durations = asyncio.Event(), Durations()
        self._is_lost = self._is_closing = False
        self.dropped = 0  # commits
        self.sent = 0  # spans

    def committed(self, commits: Sequence[Commit]) -> None:
        """Take commits in. On the way of commits, only their first events are read."""
        for commit in commits:
            name = commit.execution_id
            if not commit.events:
                continue
            if not commit.expected_seq and not self._starts_sampled(commit.events):
                self._follow(name, None)
            if self._followed.get(name, self) is None and "ended_at" not in commit.projection:
                continue
            if len(self._waiting) >= MOST_WAITING:
                self.dropped += 1
                continue
            self._waiting.append(commit)
            self._wake.set()

    def _starts_sampled(self, events: Sequence[Event]) -> bool:
        given, workload = "", dict[str, Any]()
        for event in events[:2]:
            given = str(event.payload.get("trace", "")) or given
            workload = event.payload.get("workload") or workload
        found = trace_of(events[0].execution_id, given, workload, self._settings.of_executions)
        return found is not None and found.sampled

    def _follow(self, name: str, fold: TraceFold | None) -> None:
        self._followed[name] = fold
        if len(self._followed) > _MOST_FOLLOWED:
            del self._followed[next(iter(self._followed))]

    async def run(self) -> None:
        """Send spans until cancelled; then for a moment what is left."""
        try:
            while True:
                await self._wake.wait()
                await asyncio.sleep(_LATER_S)
                self._wake.clear()
                await self._send_waiting()
        finally:
            self._is_closing = True
            try:
                async with asyncio.timeout(_FLUSH_S):
                    await self._send_waiting()
            except (TimeoutError, asyncio.CancelledError):
                _log.debug("spans of %d commits are not sent", len(self._waiting))

    async def _send_waiting(self) -> None:
        while self._waiting:
            commit = self._waiting.popleft()
            try:
                self._spans += await self._read(commit)
            except NoetlError as error:
                _log.debug("the trace of execution %s has a gap: %s", commit.execution_id, error)
            except Exception:  # noqa: BLE001  a trace is never worth the server
                _log.exception("the trace of execution %s has a gap", commit.execution_id)
            if len(self._spans) >= _TOGETHER:
                await self._send()
        await self._send()

    async def _send(self) -> None:
        spans, self._spans = self._spans, []
        if not spans:
            return
        try:
            await self._sender.send(spans)
            self.sent += len(spans)
            if self._is_lost:
                _log.info("Traces are sent again.")
            self._is_lost = False
        except NoetlError as error:
            if not self._is_lost:
                _log.warning("%s Trying again with the next spans.", error)
            self._is_lost = True

    async def _read(self, commit: Commit) -> list[Span]:
        """Return the spans that a commit completes."""
        name, ends = commit.execution_id, _ending(commit.events)
        fold = self._followed.get(name)
        if fold is None and name not in self._followed:
            fold = TraceFold(name, await self._plan_of(commit), self._settings.of_executions)
        if fold is None:
            return await self._ended_unsampled(commit) if ends else []
        if fold.seq < commit.expected_seq:
            await self._catch_up(fold, commit.expected_seq)
        found = [span for event in commit.events if event.seq > fold.seq for span in fold.add(event)]
        self._follow(name, fold if fold.sampled else None)
        if not ends:
            if "ended_at" in commit.projection:  # it was retried after its end
                self._followed.pop(name, None)
            return found if fold.sampled else []
        forced = self._is_forced(commit)
        self._followed.pop(name, None)
        if fold.sampled:
            return found
        return await self._whole(commit) if forced else []

    async def _ended_unsampled(self, commit: Commit) -> list[Span]:
        """Return the whole trace of an execution that failed or was slow."""
        self._followed.pop(commit.execution_id, None)
        return await self._whole(commit) if self._is_forced(commit) else []

    def _is_forced(self, commit: Commit) -> bool:
        """Return whether an execution failed or was slow."""
        row = commit.projection
        took = (row.get("ended_at") or 0) - (row.get("started_at") or 0)
        is_slow = self._durations.is_slow(str(row.get("path")), took)
        return (row.get("status") == "failed" and self._settings.on_error) or (is_slow and self._settings.on_slow)

    async def _whole(self, commit: Commit) -> list[Span]:
        fold = TraceFold(commit.execution_id, await self._plan_of(commit), self._settings.of_executions)
        last = commit.events[-1].seq
        found: list[Span] = []
        while fold.seq < last:
            events = await self._store.read(commit.execution_id, fold.seq, _PAGE)
            if not events:
                break
            found += [span for event in events for span in fold.add(event)]
            await asyncio.sleep(0)
        return found

    async def _catch_up(self, fold: TraceFold, seq: int) -> None:
        """Read what other servers committed; they send the spans of that."""
        while fold.seq < seq:
            events = await self._store.read(fold.execution_id, fold.seq, min(_PAGE, seq - fold.seq))
            if not events:
                return
            for event in events:
                fold.add(event)
            await asyncio.sleep(0)

    async def _plan_of(self, commit: Commit) -> Plan | None:
        playbook = str(commit.projection.get("playbook", ""))
        try:
            return await self._plan(playbook) if playbook else None
        except NoetlError:
            return None


def _ending(events: Sequence[Event]) -> bool:
    return any(event.event_type == "playbook.finished" for event in events)
