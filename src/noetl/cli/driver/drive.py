"""Drive an execution from this process until it ends or is blocked.

Blocked means that only an outside event, such as a signal, can move it. Ctrl-C cancels the execution; a second Ctrl-C kills the
process. Tested in tests/acceptance/executions/test_run*.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from noetl.cli.output.progress import Progress
from noetl.cli.runtime.runner import tune_gc
from noetl.cli.runtime.terminal import echo
from noetl.engine.decision.builder import is_blocked
from noetl.engine.state.evolve import evolve, fold
from noetl.engine.state.execution import Execution
from noetl.model.errors import StoreUnavailable
from noetl.model.messages import Cancel
from noetl.server.operations.forks import submit_with_retry

if TYPE_CHECKING:
    from noetl.model.events import Event
    from noetl.ports import EventLog
    from noetl.wiring.embedded import Embedded

_POLL_S: Final = 0.25
_KILLED: Final = 130


def new_id() -> str:
    """Return a new message ID."""
    return uuid4().hex


async def drive(app: Embedded, state: Execution, progress: Progress, wait_s: float = 0.0) -> Execution:
    """Follow an execution to its end, or until it was blocked for `wait_s`."""
    execution_id = state.execution_id
    blocked_since: float | None = None
    tune_gc()
    async with _cancel_on_interrupt(app, state), _event_feed(app, execution_id, state.seq) as next_event:
        while state.phase != "ended":
            event = await next_event()
            if event is not None:
                evolve(state, event)
                progress.update(event, state)
                blocked_since = None
                continue
            _check_store(app, execution_id)
            if await _is_blocked(app.store, state):
                blocked_since = monotonic() if blocked_since is None else blocked_since
                if monotonic() - blocked_since >= wait_s:
                    break
    return state


def _check_store(app: Embedded, execution_id: str) -> None:
    check = getattr(app.store, "check", None)  # only a store that is a file has it
    if check is None:
        return
    try:
        check()
    except StoreUnavailable as error:
        raise StoreUnavailable(
            f"Stopped driving execution {execution_id}: {error} "
            f"Continue with `noetl resume {execution_id}` when the store is back."
        ) from None


async def _is_blocked(log: EventLog, state: Execution) -> bool:
    if not state.children or state.review is not None:
        return is_blocked(state)
    if state.timers or any(run.phase in ("scheduled", "started") and run.loop is None for run in state.runs.values()):
        return False
    if any(run.loop is not None and run.loop.pieces for run in state.runs.values()):
        return False
    for child_id in state.children:
        child = fold(child_id, await log.read(child_id))
        if child.phase == "ended" or not await _is_blocked(log, child):
            return False
    return True


@asynccontextmanager
async def _event_feed(
    app: Embedded, execution_id: str, after: int
) -> AsyncIterator[Callable[[], Awaitable[Event | None]]]:
    queue: asyncio.Queue[Event] = asyncio.Queue()

    async def feed() -> None:
        async for event in app.control.follow(execution_id, after):
            queue.put_nowait(event)

    async def next_event() -> Event | None:
        if queue.empty():
            if feeding.done():
                feeding.result()
            with suppress(TimeoutError):
                return await asyncio.wait_for(queue.get(), _POLL_S)
            return None
        return queue.get_nowait()

    feeding = asyncio.create_task(feed())
    try:
        yield next_event
    finally:
        feeding.cancel()
        with suppress(asyncio.CancelledError):
            await feeding


@asynccontextmanager
async def _cancel_on_interrupt(app: Embedded, state: Execution) -> AsyncIterator[None]:
    execution_id = state.execution_id
    loop = asyncio.get_running_loop()
    cancellations: list[asyncio.Task[object]] = []

    def interrupted() -> None:
        if cancellations:
            os._exit(_KILLED)
        notice = "cancelling"
        if any(run.role == "compensation" for run in state.runs.values()):
            notice = f"a rollback is running and continues; resume it later with `noetl resume {execution_id}`"
        echo(f"noetl: {notice}; press Ctrl-C again to kill", err=True)
        message = Cancel(new_id(), "interrupted from the keyboard", by="keyboard")
        cancellations.append(asyncio.create_task(submit_with_retry(app.control, execution_id, message)))

    loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        for task in cancellations:
            await task
