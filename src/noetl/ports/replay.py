"""Fold the log of an execution page by page.

Only one page and the state are in memory. The next page is read while the current one is folded. Changes nothing.
Tested in tests/conformance/test_event_log.py and tests/acceptance/executions/test_run_commands.py.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

from noetl.engine.queries.view import known, no_event
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution
from noetl.model.events import Event

PAGE: Final = 2_000


class Readable(Protocol):
    """The part of a log that a replay reads."""

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]: ...


class Replay:
    """State of an execution that advances along its log."""

    def __init__(self, log: Readable, execution_id: str, page: int = PAGE, *, state: Execution | None = None) -> None:
        self._log = log
        self._page = page
        self.state = state or Execution(execution_id)  # a given one is changed
        self.last: str | None = None  # type of the last folded event

    async def go(self, to: int | None = None) -> Execution:
        """Advance to an event, or to the end. Raises InvalidInput if there is none."""
        if to is not None and to < self.state.seq:  # a replay only advances
            raise no_event(to, (await self.go()).seq)
        pending = self._request(self.state.seq, to)
        try:
            while page := await pending:
                at, is_last = page[-1].seq, len(page) < self._page or page[-1].seq == to
                if not is_last:
                    pending = self._request(at, to)
                    await asyncio.sleep(0)  # the request for the next page leaves before this one is folded
                fold(self.state.execution_id, page, self.state)
                self.last = page[-1].event_type
                if is_last:
                    break
        finally:
            pending.cancel()
        if to is not None and self.state.seq != to:
            raise no_event(to, self.state.seq)
        return self.state

    def _request(self, after: int, to: int | None) -> asyncio.Future[list[Event]]:
        most = self._page if to is None else max(0, min(self._page, to - after))
        return asyncio.ensure_future(self._log.read(self.state.execution_id, after, most))


async def views(
    log: Readable, execution_id: str, to: int | None, since: int | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the views after event `to` (default: the end) and `since` (or None)."""
    replay = Replay(log, execution_id)
    found: dict[int | None, dict[str, Any]] = {}
    for seq in [*sorted({seq for seq in (to, since) if seq is not None}), *([None] if to is None else [])]:
        await replay.go(seq)
        found[seq] = known(replay.state, replay.last)
    return found[to], None if since is None else found[since]
