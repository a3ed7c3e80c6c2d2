"""Folds the log of an execution page by page: however long it is, one page and the state are in memory.

The next page is asked for while the last one is folded. Changes nothing. Tested in tests/conformance/test_event_log.py and
tests/acceptance/executions/test_run_commands.py.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

from noetl.engine.evolve import fold
from noetl.engine.state import Execution
from noetl.engine.view import known, no_event
from noetl.model.events import Event

PAGE: Final = 2_000


class Readable(Protocol):
    """What a replay takes of a log."""

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]: ...


class Replay:
    """A state that goes forward along a log."""

    def __init__(self, log: Readable, execution_id: str, page: int = PAGE) -> None:
        self._log = log
        self._page = page
        self.state = Execution(execution_id)
        self.last: str | None = None  # the type of the event that was folded last

    async def go(self, to: int | None = None) -> Execution:
        """Go on until an event, or to the end of the log; raises InvalidInput where there is no such event."""
        if to is not None and to < self.state.seq:  # it goes forward only
            raise no_event(to, (await self.go()).seq)
        coming = self._ask(self.state.seq, to)
        try:
            while page := await coming:
                at, is_last = page[-1].seq, len(page) < self._page or page[-1].seq == to
                if not is_last:
                    coming = self._ask(at, to)
                    await asyncio.sleep(0)  # the question leaves before the answer to the last one is looked at
                fold(self.state.execution_id, page, self.state)
                self.last = page[-1].event_type
                if is_last:
                    break
        finally:
            coming.cancel()
        if to is not None and self.state.seq != to:
            raise no_event(to, self.state.seq)
        return self.state

    def _ask(self, after: int, to: int | None) -> asyncio.Future[list[Event]]:
        most = self._page if to is None else max(0, min(self._page, to - after))
        return asyncio.ensure_future(self._log.read(self.state.execution_id, after, most))


async def views(
    log: Readable, execution_id: str, to: int | None, since: int | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Give what is known of an execution after an event, or at the end; and after another one, if asked for."""
    replay = Replay(log, execution_id)
    found: dict[int | None, dict[str, Any]] = {}
    for seq in [*sorted({seq for seq in (to, since) if seq is not None}), *([None] if to is None else [])]:
        await replay.go(seq)
        found[seq] = known(replay.state, replay.last)
    return found[to], None if since is None else found[since]
