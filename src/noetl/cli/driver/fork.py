"""Fork an execution of a local store and drive the fork.

Shared by `fork` and `retry`. Tested in tests/acceptance/executions/test_run_fork.py and test_run_retry.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noetl.cli.driver.start import drive_and_report
from noetl.cli.playbooks.prepare import Preparer
from noetl.cli.runtime.driver_lock import driver_lock
from noetl.cli.runtime.store import existing, local_settings, resolve_id
from noetl.cli.runtime.terminal import echo
from noetl.server.cache.ids import new_execution
from noetl.server.operations.forks import fork_from
from noetl.wiring.embedded import embedded

if TYPE_CHECKING:
    from noetl.wiring.embedded import Embedded


async def fork_and_drive(
    store: str | None,
    given: str,
    start: str,
    changes: Mapping[str, Mapping[str, Any]],
    *,
    file: str | None = None,
    playbook: str = "",
    as_json: bool,
) -> int:
    """Fork from before a step or after an event, drive it and return the exit code.

    The fork continues with a playbook file, with one of the store by its content hash, or with that of the source.
    """
    settings = existing(local_settings(store))
    async with embedded(settings) as app:
        execution_id = new_execution(app.store.clock.now())
        with driver_lock(settings, execution_id):
            source = await resolve_id(app.store, given)
            made = await fork_from(
                app.store,
                app.control,
                source,
                execution_id,
                start,
                ctx=changes.get("ctx", {}),
                workload=changes.get("workload", {}),
                at=app.store.clock.now(),
                playbook=playbook if file is None else await _register(app, file),
                pool=f"local:{execution_id}",
            )
            if not as_json:
                echo(f"execution {execution_id} forked from {start} of {source}", err=True)
            async with app.run_worker(f"local:{execution_id}"):
                return await drive_and_report(app, made.state, 0.0, as_json=as_json)


async def _register(app: Embedded, file: str) -> str:
    preparer = Preparer(Path.cwd())
    pinned = preparer.prepare(file).playbook
    await preparer.register(app.store, app.store.clock.now())
    return pinned
