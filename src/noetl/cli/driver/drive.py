"""Drives an execution from this process: does its work and follows its log until it ends or only somebody else can move it.

`run`, `resume`, `fork`, `signal`, `cancel` and `unpause` share it. Ctrl-C cancels, a second one kills. Tested in
tests/acceptance/test_run*.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING
from uuid import uuid4

import typer

from noetl.cli.common.garbage import settle
from noetl.cli.output.progress import Progress
from noetl.engine.decision import needs_signal
from noetl.engine.evolve import evolve, fold
from noetl.engine.state import Execution
from noetl.model.errors import StoreUnavailable
from noetl.model.messages import AnyMessage, Cancel
from noetl.server.forks import tell_surely

if TYPE_CHECKING:
    from noetl.model.events import Event
    from noetl.ports import EventLog
    from noetl.wiring import Embedded

FOREVER = float("inf")
_LOOK_S = 0.25
_KILLED = 130


def new_id() -> str:
    """Name a message."""
    return uuid4().hex


async def drive(app: Embedded, state: Execution, show: Progress, wait_s: float = 0.0) -> Execution:
    """Follow an execution from a state on to its end, or to where only somebody else can move it and `wait_s` has passed."""
    execution_id = state.execution_id
    still_since: float | None = None
    settle()
    async with _interruptible(app, state), _followed(app, execution_id, state.seq) as arriving:
        while state.phase != "ended":
            event = await arriving()
            if event is not None:
                evolve(state, event)
                show.tell(event, state)
                still_since = None
                continue
            _check(app, execution_id)
            if await only_outside(app.store, state):
                still_since = monotonic() if still_since is None else still_since
                if monotonic() - still_since >= wait_s:
                    break
    return state


def _check(app: Embedded, execution_id: str) -> None:
    """Give up an execution whose store is not there any more. Raises StoreUnavailable."""
    check = getattr(app.store, "check", None)  # of a store that is a file
    if check is None:
        return
    try:
        check()
    except StoreUnavailable as error:
        again = f"`noetl resume {execution_id}` goes on when it is back"
        raise StoreUnavailable(f"execution {execution_id} was given up: {error} {again}.") from None


async def only_outside(log: EventLog, state: Execution) -> bool:
    """Tell whether only somebody outside can move an execution: it waits for a signal, or all that it waits for does."""
    if not state.children:
        return needs_signal(state)
    if state.timers or any(run.phase in ("scheduled", "started") and run.loop is None for run in state.runs.values()):
        return False
    if any(run.loop is not None and run.loop.pieces for run in state.runs.values()):
        return False
    for child_id in state.children:
        child = fold(child_id, await log.read(child_id))
        if child.phase == "ended" or not await only_outside(log, child):
            return False
    return True


@asynccontextmanager
async def _followed(
    app: Embedded, execution_id: str, after: int
) -> AsyncIterator[Callable[[], Awaitable[Event | None]]]:
    """Give a function that waits a moment for the next event, and gives None where none came."""
    queue: asyncio.Queue[Event] = asyncio.Queue()

    async def feed() -> None:
        async for event in app.control.follow(execution_id, after):
            queue.put_nowait(event)

    async def arriving() -> Event | None:
        if queue.empty():
            if feeding.done():
                feeding.result()
            with suppress(TimeoutError):
                return await asyncio.wait_for(queue.get(), _LOOK_S)
            return None
        return queue.get_nowait()

    feeding = asyncio.create_task(feed())
    try:
        yield arriving
    finally:
        feeding.cancel()
        with suppress(asyncio.CancelledError):
            await feeding


@asynccontextmanager
async def _interruptible(app: Embedded, state: Execution) -> AsyncIterator[None]:
    """Turn Ctrl-C into a cancellation, and a second one into the end of the process."""
    execution_id = state.execution_id
    loop = asyncio.get_running_loop()
    asked: list[asyncio.Task[bool]] = []

    def interrupted() -> None:
        if asked:
            os._exit(_KILLED)
        said = "cancelling"
        if any(run.role == "compensation" for run in state.runs.values()):
            said = f"what was done is being undone, which goes on; `noetl resume {execution_id}` goes on with it later"
        typer.echo(f"noetl: {said}; press Ctrl-C again to kill", err=True)
        message = Cancel(new_id(), "it was interrupted from the keyboard", by="keyboard")
        asked.append(asyncio.create_task(tell(app, execution_id, message)))

    loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        for task in asked:
            await task


async def tell(app: Embedded, execution_id: str, message: AnyMessage) -> bool:
    """Give an execution a message; somebody else's commit in between is not the caller's trouble."""
    await tell_surely(app.control, execution_id, message)
    return True
