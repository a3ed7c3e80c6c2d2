"""`noetl fork`: start a new execution from the middle of an old one.

Work in progress at that point runs again; completed work does not. Tested in tests/acceptance/executions/test_run_fork.py.
"""

from __future__ import annotations

from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.arguments.completers import complete_step
from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.store import existing, local_settings, resolve_id
from noetl.cli.runtime.target import Server, connect, server_of
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.engine.state.execution import Execution
    from noetl.wiring.embedded import Embedded


def command(
    id: ExecutionId,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="STEP|SEQ",
            help="Fork before the last run of this step, or after this event.",
            autocompletion=complete_step,
        ),
    ],
    patch: Annotated[
        list[str] | None,
        typer.Option(
            "--patch", metavar="PATH=VALUE", help="Change a value: ctx.x=…, workload.x=…; JSON or text; repeatable."
        ),
    ] = None,
    playbook: Annotated[
        str | None, typer.Option("--playbook", metavar="FILE", help="Continue with this version of the playbook.")
    ] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Start a new execution from the middle of an old one."""

    async def job() -> int:
        from noetl.cli.driver.start import drive_and_report
        from noetl.cli.runtime.driver_lock import driver_lock
        from noetl.server.cache.ids import new_execution
        from noetl.wiring.embedded import embedded

        changes = _parse_patch(patch or [])
        server = server_of(store)
        if server is not None:
            return await _fork_remote(server, id, start, changes, playbook, as_json=json)
        settings = existing(local_settings(store))
        execution_id = new_execution(int(time() * 1000))
        async with embedded(settings) as app:
            with driver_lock(settings, execution_id):
                source = await resolve_id(app.store, id)
                state = await _fork_local(app, source, execution_id, start, changes, playbook)
                if not json:
                    typer.echo(f"execution {execution_id} forked from {start} of {source}", err=True)
                async with app.run_worker(f"local:{execution_id}"):
                    return await drive_and_report(app, state, 0.0, as_json=json)

    raise typer.Exit(call(job))


async def _fork_remote(
    server: Server, given: str, start: str, changes: dict[str, dict[str, Any]], playbook: str | None, *, as_json: bool
) -> int:
    from noetl.cli.output.format import to_json
    from noetl.cli.playbooks.upload import upload
    from noetl.client.history import RemoteHistory

    async with connect(server) as client:
        source = await resolve_id(RemoteHistory(client), given)
        pinned = (await upload(client, [playbook], Path.cwd()))[-1].playbook if playbook is not None else None
        made = await client.fork(source, start, ctx=changes["ctx"], workload=changes["workload"], playbook=pinned)
    typer.echo(to_json(made) if as_json else made.execution_id)
    typer.echo(f"execution {made.execution_id} forked from {start} of {source}", err=True)
    return 0


async def _fork_local(
    app: Embedded, source: str, execution_id: str, start: str, changes: dict[str, dict[str, Any]], playbook: str | None
) -> Execution:
    from noetl.cli.playbooks.prepare import Preparer
    from noetl.server.operations.forks import fork_from

    pinned = ""
    if playbook is not None:
        preparer = Preparer(Path.cwd())
        pinned = preparer.prepare(playbook).playbook
        await preparer.register(app.store, int(time() * 1000))
    made = await fork_from(
        app.store,
        app.control,
        source,
        execution_id,
        start,
        ctx=changes["ctx"],
        workload=changes["workload"],
        at=int(time() * 1000),
        playbook=pinned,
        pool=f"local:{execution_id}",
    )
    return made.state


def _parse_patch(given: list[str]) -> dict[str, dict[str, Any]]:
    from noetl.cli.arguments.payload import parse_value

    changes: dict[str, dict[str, Any]] = {"ctx": {}, "workload": {}}
    for text in given:
        path, equals, value = text.partition("=")
        scope, _, key = path.strip().partition(".")
        if not equals or scope not in changes or not key:
            raise InvalidInput(f"`--patch {text}` is not of the form ctx.key=value or workload.key=value.")
        changes[scope][key] = parse_value(value)
    return changes
