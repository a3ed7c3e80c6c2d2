"""`noetl delete`: delete an ended execution with its log and stored results.

A server removes the results at its next garbage collection. Tested in tests/acceptance/executions/test_run_retry.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.store import existing, local_settings, resolve_id, with_store
from noetl.cli.runtime.target import connect, server_of
from noetl.cli.runtime.terminal import echo

if TYPE_CHECKING:
    from noetl.wiring.embedded import Store


def command(id: ExecutionId, json: AsJson = False, store: Place = None) -> None:
    """Delete an ended execution with its log, dead letters and stored results."""

    async def job() -> None:
        from noetl.cli.output.format import to_json
        from noetl.client.history import RemoteHistory

        server = server_of(store)
        if server is None:
            execution_id = await with_store(store, lambda opened: _delete(opened, store, id))
        else:
            async with connect(server) as client:
                execution_id = await resolve_id(RemoteHistory(client), id)
                await client.delete(execution_id)
        if json:
            echo(to_json({"execution_id": execution_id, "status": "deleted"}))
        echo(f"deleted execution {execution_id}", err=True)

    call(job)


async def _delete(opened: Store, store: str | None, given: str) -> str:
    from noetl.cli.runtime.environment import actor
    from noetl.model.errors import Conflict
    from noetl.server.operations.retention import delete_executions
    from noetl.wiring.embedded import open_collector

    execution_id = await resolve_id(opened, given)
    if not await delete_executions(opened, [execution_id], opened.clock.now(), actor()):
        raise Conflict(f"Execution {execution_id} has not ended. Cancel it first: `noetl cancel {execution_id}`.")
    await open_collector(existing(local_settings(store)), opened).collect()
    return execution_id
