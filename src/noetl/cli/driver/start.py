"""Starts a prepared playbook in this process and drives it; continues one likewise.

Tested in tests/acceptance/test_run.py and test_run_resume.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from time import time
from typing import TYPE_CHECKING, Any

import typer

from noetl.cli.common.store import driving, plan_of
from noetl.cli.driver.drive import drive, new_id, tell
from noetl.cli.driver.outbox_delivery import delivering
from noetl.cli.output.progress import progress
from noetl.cli.output.summary import exit_code, say_ending, say_summary, say_waiting
from noetl.cli.playbooks.prepare import Prepared, Preparing
from noetl.engine.evolve import fold
from noetl.engine.explain import standings
from noetl.engine.state import Execution
from noetl.model.messages import AnyMessage, PatchCtx, Start
from noetl.server.starting import new_execution
from noetl.settings import Settings
from noetl.wiring import Embedded, embedded

if TYPE_CHECKING:
    from noetl.worker.children import ChildPool


async def start_and_drive(
    settings: Settings,
    preparing: Preparing,
    prepared: Prepared,
    payload: Mapping[str, Any],
    wait_s: float,
    children: ChildPool,
    *,
    as_json: bool,
) -> int:
    """Start an execution, drive it, and tell how it ended; gives the exit code."""
    execution_id = new_execution(int(time() * 1000))
    pool = f"local:{execution_id}"
    async with embedded(settings) as app:
        with driving(settings, execution_id):
            async with app.working(pool, children):
                await preparing.register(app.store, int(time() * 1000))
                message = Start(new_id(), prepared.path, prepared.playbook, payload, pool=pool)
                await app.control.submit(execution_id, message)
                if not as_json:
                    typer.echo(f"execution {execution_id} in {_shown(settings)}", err=True)
                return await followed(app, Execution(execution_id), wait_s, as_json=as_json)


async def take_over(
    settings: Settings, execution_id: str, root: str, message: AnyMessage | None, wait_s: float, *, as_json: bool
) -> int:
    """Become the driver of an execution that has none, tell it something, and drive it; gives the exit code."""
    pool = f"local:{root}"
    async with embedded(settings) as app:
        with driving(settings, root):
            await _take_back(app, root)
            # What was lost is queued as it stands now, and not as it was first handed out, when this is answered.
            await tell(app, root, PatchCtx(new_id(), {}))
            async with app.working(pool):
                state = fold(execution_id, await app.store.read(execution_id))
                if message is not None:
                    await tell(app, execution_id, message)
                return await followed(app, state, wait_s, as_json=as_json)


async def _take_back(app: Embedded, execution_id: str) -> None:
    """Let the leases of a dead driver run out at once: those of its execution and of all children."""
    await app.control.take_over(execution_id)
    for child in fold(execution_id, await app.store.read(execution_id)).children:
        await _take_back(app, child)


async def followed(app: Embedded, state: Execution, wait_s: float, *, as_json: bool) -> int:
    """Drive an execution from a state on and tell how it ended; gives the exit code."""
    show = progress(quiet=as_json)
    async with delivering(app):
        try:
            state = await drive(app, state, show, wait_s)
        finally:
            show.close()
    await say(app, state, as_json=as_json)
    return exit_code(state)


async def say(app: Embedded, state: Execution, *, as_json: bool) -> None:
    """Tell how an execution ended, or why nothing more happens here."""
    if as_json:
        say_summary(state)
    elif state.phase == "ended":
        say_ending(state)
    else:
        plan = await plan_of(app.store, state)
        say_waiting(state, standings(plan, state, await app.store.read(state.execution_id)))


def _shown(settings: Settings) -> str:
    if settings.database:
        return settings.database.rpartition("@")[2].partition("?")[0]  # no user, no password
    try:
        return os.path.relpath(settings.store)
    except ValueError:
        return str(settings.store)
