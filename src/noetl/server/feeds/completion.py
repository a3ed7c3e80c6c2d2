"""Wait for one or more executions to finish.

An end that this server commits is delivered without a read. When another server may have committed it, the row of the
execution is read; of many executions only up to the first that is still running. Tested in
tests/unit/server/feeds/test_completion.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from msgspec import Struct

from noetl.model.refs import expanded
from noetl.ports import Commit, EventLog
from noetl.server.sequencer.commit_hooks import CommitHooks

ENDED = frozenset({"completed", "failed", "cancelled", "partial"})
_FINISHED = "playbook.finished"
_BETWEEN_S = 0.025  # minimum time between two reads of one waiter


class Ended(Struct, frozen=True):
    """How an execution ended."""

    status: str
    result: Any
    error: Any
    ended_at: int


class CompletionWaiter:
    """One waiter; open it before the executions start, so that no end is missed."""

    def __init__(self, endings: CompletionWaiters, execution_ids: tuple[str, ...]) -> None:
        self._endings = endings
        self.left = dict.fromkeys(execution_ids)  # not known to have ended
        self.ends: dict[str, Ended] = {}
        self._woken: asyncio.Future[None] | None = None
        self._in_doubt = False  # another server may have ended one
        self.looked_at = ""  # where the last read stopped: executions after it may have ended
        self._let_go = False

    def __enter__(self) -> CompletionWaiter:
        self._endings.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._endings.remove(self, *self.left)

    async def within(self, seconds: float, *, may_be_over: bool = False) -> Mapping[str, Ended]:
        """Return the ends by the timeout or shutdown; `may_be_over`: also earlier ones."""
        loop = asyncio.get_running_loop()
        self._in_doubt |= may_be_over
        timers, free_at = [loop.call_later(seconds, self.let_go)], 0.0
        try:
            while self.left and not self._let_go:
                if self._in_doubt and loop.time() >= free_at:
                    self._in_doubt = False
                    await self._endings.read(self)
                    free_at = loop.time() + _BETWEEN_S
                    continue
                if self._in_doubt:
                    timers[1:] = [loop.call_at(free_at, self._wake)]
                self._woken = loop.create_future()
                await self._woken
        finally:
            for timer in timers:
                timer.cancel()
        return self.ends

    def forget(self, *execution_ids: str) -> None:
        """Do not wait for executions that were not started."""
        for execution_id in execution_ids:
            self._endings.remove(self, execution_id)
            del self.left[execution_id]

    def note(self, execution_id: str, end: Ended) -> None:
        del self.left[execution_id]
        self.ends[execution_id] = end
        if not self.left:
            self._wake()
        elif execution_id == self.looked_at:
            self.doubt()

    def doubt(self) -> None:
        if not self._in_doubt:
            self._in_doubt = True
            self._wake()

    def let_go(self) -> None:
        self._let_go = True
        self._wake()

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)


class CompletionWaiters:
    """Waiters by execution."""

    def __init__(self, log: EventLog, listeners: CommitHooks) -> None:
        self._log = log
        self._waiting: dict[str, list[CompletionWaiter]] = {}
        self._let_go = False
        listeners.register(end=self.committed, doubt=self.doubt)

    def of(self, *execution_ids: str) -> CompletionWaiter:
        """Return a waiter for all of these executions."""
        return CompletionWaiter(self, execution_ids)

    def committed(self, commit: Commit) -> None:
        """Wake the waiters of an execution that a commit ends."""
        if commit.execution_id not in self._waiting:
            return
        for event in reversed(commit.events):
            if event.event_type == _FINISHED:
                payload = event.payload
                end = Ended(payload["status"], expanded(payload.get("result")), payload.get("error"), event.timestamp)
                self._deliver(commit.execution_id, end)
                return
        self.doubt(commit.execution_id)

    def doubt(self, execution_id: str) -> None:
        """Make the waiters of an execution read its row: its status is unknown here."""
        for waiting in self._waiting.get(execution_id, ()):
            waiting.doubt()

    def doubt_all(self) -> None:
        """Make all waiters read: another server has committed."""
        for execution_id in self._waiting:
            self.doubt(execution_id)

    def let_go(self) -> None:
        """Release all waiters, because the server stops."""
        self._let_go = True
        for some in self._waiting.values():
            for waiting in some:
                waiting.let_go()

    def add(self, waiting: CompletionWaiter) -> None:
        if self._let_go:
            waiting.let_go()
        for execution_id in waiting.left:
            self._waiting.setdefault(execution_id, []).append(waiting)

    def remove(self, waiting: CompletionWaiter, *execution_ids: str) -> None:
        for execution_id in execution_ids:
            some = self._waiting[execution_id]
            some.remove(waiting)
            if not some:
                del self._waiting[execution_id]

    async def read(self, waiting: CompletionWaiter) -> None:
        """Read the rows of executions, up to the first that has not ended."""
        while waiting.left:
            execution_id = waiting.looked_at = next(iter(waiting.left))
            row = await self._log.execution(execution_id)
            if row is None or row.get("status") not in ENDED:
                return
            if execution_id in waiting.left:  # not delivered meanwhile
                result = expanded(row.get("result"))
                self._deliver(execution_id, Ended(row["status"], result, row.get("error"), row["ended_at"]))

    def _deliver(self, execution_id: str, end: Ended) -> None:
        for waiting in self._waiting.pop(execution_id):
            waiting.note(execution_id, end)
