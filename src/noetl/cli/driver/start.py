"""Start or take over an execution in this process and drive it.

Tested in tests/acceptance/executions/test_run.py and test_run_resume.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from noetl.cli.driver.drive import drive, new_id
from noetl.cli.driver.outbox_delivery import deliver_outbox
from noetl.cli.output.progress import make_progress
from noetl.cli.output.summary import exit_code, print_end, print_waiting
from noetl.cli.playbooks.prepare import Prepared, Preparer
from noetl.cli.runtime.driver_lock import driver_lock
from noetl.cli.runtime.store import load_plan
from noetl.cli.runtime.terminal import echo
from noetl.engine.queries.explain import standings
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution
from noetl.model.messages import AnyMessage, PatchCtx, Start
from noetl.server.cache.ids import new_execution
from noetl.server.operations.forks import submit_with_retry
from noetl.settings import Settings
from noetl.wiring.embedded import Embedded, embedded

if TYPE_CHECKING:
    from noetl.worker.processes.children import ChildPool


async def start_and_drive(
    settings: Settings,
    preparer: Preparer,
    prepared: Prepared,
    payload: Mapping[str, Any],
    wait_s: float,
    children: ChildPool,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    """Start an execution, drive it and print its result; return the exit code."""
    async with embedded(settings) as app:
        for made in preparer.found.values():
            if made is not None:
                from noetl.wiring.preflight import require_credentials

                await require_credentials(made.canonical, app.credential)
        execution_id = new_execution(app.store.clock.now())
        pool = f"local:{execution_id}"
        with driver_lock(settings, execution_id):
            async with app.run_worker(pool, children):
                await preparer.register(app.store, app.store.clock.now())
                message = Start(new_id(), prepared.path, prepared.playbook, payload, pool=pool)
                await app.control.submit(execution_id, message)
                if not as_json:
                    echo(f"execution {execution_id} in {_store_name(settings)}", err=True)
                state, files = Execution(execution_id), preparer.files
                return await drive_and_report(app, state, wait_s, as_json=as_json, quiet=quiet, files=files)


async def take_over(
    settings: Settings, execution_id: str, root: str, message: AnyMessage | None, wait_s: float, *, as_json: bool
) -> int:
    """Take over an execution, send it a message, drive it; return the exit code."""
    pool = f"local:{root}"
    async with embedded(settings) as app:
        with driver_lock(settings, root):
            await _expire_leases(app, root)
            # Lost work is queued again from the current state, not as it was first leased, once this is answered.
            await submit_with_retry(app.control, root, PatchCtx(new_id(), {}))
            async with app.run_worker(pool):
                state = fold(execution_id, await app.store.read(execution_id))
                if message is not None:
                    await submit_with_retry(app.control, execution_id, message)
                return await drive_and_report(app, state, wait_s, as_json=as_json)


async def _expire_leases(app: Embedded, execution_id: str) -> None:
    await app.control.take_over(execution_id)
    for child in fold(execution_id, await app.store.read(execution_id)).children:
        await _expire_leases(app, child)


async def drive_and_report(
    app: Embedded,
    state: Execution,
    wait_s: float,
    *,
    as_json: bool,
    quiet: bool = False,
    files: Mapping[str, str] | None = None,
) -> int:
    """Drive an execution from a state and print its result; return the exit code.

    `files` are the names of the playbooks' files by path, for messages; `quiet` hides what tasks print.
    """
    progress = make_progress(silent=as_json, quiet=quiet)
    async with deliver_outbox(app):
        try:
            state = await drive(app, state, progress, wait_s)
        finally:
            progress.close()
    if as_json or state.phase == "ended":
        await print_end(app.store, state, as_json=as_json, files=files)
    else:
        plan = await load_plan(app.store, state)
        print_waiting(state, standings(plan, state, await app.store.read(state.execution_id)))
    return exit_code(state)


def _store_name(settings: Settings) -> str:
    if settings.database:
        return settings.database.rpartition("@")[2].partition("?")[0]  # without user and password
    try:
        return os.path.relpath(settings.store)
    except ValueError:
        return str(settings.store)
