"""Watchdog of a server's or worker's process, behind the budgets of evaluations.

A thread ends an evaluation that runs longer than its deadline without a pause: its budget is drained, so it fails. If the
event loop does not run while the process uses `_STUCK_S` seconds of processor time, the kernel ends the process: code of
a library that never returns cannot be interrupted otherwise, not even by a thread, which would need the interpreter's
lock. What it was evaluating is kept (`stuck_record`): a template that ended several processes is not evaluated again. The
leases of a worker run out, and work that costs every worker that takes it fails by `limits.max_attempts`. Processor time
counts, so a frozen process or a sleeping machine is not ended. Tested in tests/unit/wiring/test_watchdog.py.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Final

from noetl.client.local_server import state_folder
from noetl.expr.runtime.running import RUNNING
from noetl.wiring.stuck_record import StuckRecord

_log = logging.getLogger(__name__)
_EVALUATION_S: Final = 2.0
_STUCK_S: Final = max(20.0, 2.0 * (os.cpu_count() or 1))  # of all threads: a query of DuckDB may use every core
_LOOK_S: Final = 0.5


@asynccontextmanager
async def watched(evaluation_s: float = _EVALUATION_S, stuck_s: float = _STUCK_S) -> AsyncIterator[None]:
    """Watch the evaluations and the event loop of this process."""
    stopping = threading.Event()
    thread = threading.Thread(target=_watch, args=(stopping, evaluation_s), name="noetl-watchdog", daemon=True)
    thread.start()
    faulthandler.register(signal.SIGPROF, file=sys.__stderr__ or sys.stderr, chain=True)
    try:
        with _recorded():
            _postpone(stuck_s)
            beating = asyncio.create_task(_beat(stuck_s), name="noetl-watchdog")
            try:
                yield
            finally:
                beating.cancel()
                await asyncio.wait([beating])
                _postpone(0)
    finally:
        faulthandler.unregister(signal.SIGPROF)
        stopping.set()


@contextmanager
def _recorded() -> Iterator[None]:
    """Keep what is being evaluated, where the state folder can be written."""
    record = StuckRecord(state_folder() / "evaluations")
    with ExitStack() as stack:
        try:
            refused = record.refused()
            file = stack.enter_context(record.kept())
        except OSError as error:
            _log.info("What is being evaluated is not kept: %s. XDG_STATE_HOME names the folder for it.", error)
        else:
            faulthandler.register(signal.SIGVTALRM, file=file)
            stack.callback(faulthandler.unregister, signal.SIGVTALRM)
            RUNNING.watch(record.note, refused)
            stack.callback(RUNNING.watch, None, frozenset())
        yield


def _watch(stopping: threading.Event, deadline_s: float) -> None:
    """Drain the budget of an evaluation that is seen too often without a pause."""
    seen = looks = 0
    while not stopping.wait(_LOOK_S):
        budget, number = RUNNING.budget, RUNNING.number
        looks = looks + 1 if number == seen and budget is not None else 0
        seen = number
        if budget is not None and looks * _LOOK_S >= deadline_s:
            budget.drain()
            _log.error("an evaluation took longer than %g s and was ended", deadline_s)


async def _beat(stuck_s: float) -> None:
    """Postpone the end of the process for as long as the event loop runs."""
    while True:
        await asyncio.sleep(1)
        _postpone(stuck_s)


def _postpone(stuck_s: float) -> None:
    """Set the kernel's timers: the stack for the record comes before the end."""
    signal.setitimer(signal.ITIMER_VIRTUAL, stuck_s * 0.8)
    signal.setitimer(signal.ITIMER_PROF, stuck_s)
