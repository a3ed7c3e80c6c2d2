"""`noetl retry`: continue from the failed step in a new execution.

Exit codes are those of `noetl run`; 0 on a server, whose workers run it. Tested in
tests/acceptance/executions/test_run_retry.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.store import load_state, resolve_id, with_store
from noetl.cli.runtime.target import Server, connect, server_of
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import Conflict

if TYPE_CHECKING:
    from noetl.wiring.embedded import Store


def command(
    id: ExecutionId,
    step: Annotated[
        str | None, typer.Option("--step", metavar="STEP", help="Continue from this step. [default: the failed one]")
    ] = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="Use the latest version of the playbook in the catalog.")
    ] = False,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Continue from the failed step of an execution, in a new execution."""

    async def job() -> int:
        server = server_of(store)
        if server is not None:
            return await _retry_remote(server, id, step, latest, as_json=json)
        from noetl.cli.driver.fork import fork_and_drive

        source, start, playbook = await with_store(store, lambda opened: _find(opened, id, step, latest), to_read=True)
        return await fork_and_drive(store, source, start, {}, playbook=playbook, as_json=json)

    raise typer.Exit(call(job))


async def _find(opened: Store, given: str, step: str | None, latest: bool) -> tuple[str, str, str]:
    from noetl.engine.queries.execution_fork import failed_step

    state, _ = await load_state(opened, given)
    start = step or failed_step(state)
    if start is None:
        raise Conflict(
            f"No step of execution {state.execution_id} has failed. "
            f"Choose one with --step STEP, or use `noetl fork {state.execution_id} --from STEP`."
        )
    playbook = await opened.content_hash(state.path) if latest else ""
    if playbook is None:
        raise Conflict(f"`{state.path}` is no longer in the catalog. Omit --latest.")
    return state.execution_id, start, playbook


async def _retry_remote(server: Server, given: str, step: str | None, latest: bool, *, as_json: bool) -> int:
    from noetl.cli.output.format import to_json
    from noetl.client.history import RemoteHistory

    async with connect(server) as client:
        source = await resolve_id(RemoteHistory(client), given)
        made = await client.retry(source, step, latest=latest)
    echo(to_json(made) if as_json else made.execution_id)
    echo(f"execution {made.execution_id} retries {source}", err=True)
    return 0
