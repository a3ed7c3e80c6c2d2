"""`noetl fork`: starts a new execution that shares an old one's history up to a step or an event, and drives it.

What was under way at that point is done again; what had ended is not. Tested in tests/acceptance/test_run_fork.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.common.completers import Id, steps
from noetl.cli.common.store import AsJson, Place, call, driving, existing, local_settings, the_id
from noetl.cli.common.target import Server, connected, server_of
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.engine.state import Execution
    from noetl.wiring import Embedded


def command(
    id: Id,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="STEP|SEQ",
            help="Before the last run of this step, or after this event.",
            autocompletion=steps,
        ),
    ],
    patch: Annotated[
        list[str] | None,
        typer.Option("--patch", metavar="PATH=VALUE", help="A change: ctx.x=…, workload.x=…; JSON or text."),
    ] = None,
    playbook: Annotated[
        str | None, typer.Option("--playbook", metavar="FILE", help="Go on with this version of the playbook.")
    ] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Start a new execution from the middle of an old one."""

    async def job() -> int:
        from time import time

        from noetl.cli.driver.start import followed
        from noetl.server.starting import new_execution
        from noetl.wiring import embedded

        server = server_of(store)
        if server is not None:
            return await _fork_there(server, id, start, patches(patch or []), playbook, as_json=json)
        settings = existing(local_settings(store))
        execution_id = new_execution(int(time() * 1000))
        async with embedded(settings) as app:
            with driving(settings, execution_id):
                source = await the_id(app.store, id)
                state = await _fork(app, source, execution_id, start, patches(patch or []), playbook)
                if not json:
                    typer.echo(f"execution {execution_id} goes on from {start} of {source}", err=True)
                async with app.working(f"local:{execution_id}"):
                    return await followed(app, state, 0.0, as_json=json)

    raise typer.Exit(call(job))


async def _fork_there(
    server: Server, given: str, start: str, changes: dict[str, dict[str, Any]], playbook: str | None, *, as_json: bool
) -> int:
    """Fork an execution of a server, which goes on with it."""
    from noetl.cli.common.store import as_json as one_line
    from noetl.cli.playbooks.upload import brought
    from noetl.client.history import RemoteHistory

    async with connected(server) as client:
        source = await the_id(RemoteHistory(client), given)
        pinned = (await brought(client, [playbook], Path.cwd()))[-1].playbook if playbook is not None else None
        made = await client.fork(source, start, ctx=changes["ctx"], workload=changes["workload"], playbook=pinned)
    typer.echo(one_line(made) if as_json else made.execution_id)
    typer.echo(f"execution {made.execution_id} goes on from {start} of {source}", err=True)
    return 0


async def _fork(
    app: Embedded, source: str, execution_id: str, start: str, changes: dict[str, dict[str, Any]], playbook: str | None
) -> Execution:
    from time import time

    from noetl.cli.playbooks.prepare import Preparing
    from noetl.server.forks import fork_from

    pinned = ""
    if playbook is not None:
        preparing = Preparing(Path.cwd())
        pinned = preparing.read(playbook).playbook
        await preparing.register(app.store, int(time() * 1000))
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


def patches(given: list[str]) -> dict[str, dict[str, Any]]:
    """Read changes of the form `ctx.key=value` and `workload.key=value`."""
    from noetl.cli.playbooks.prepare import value_of

    found: dict[str, dict[str, Any]] = {"ctx": {}, "workload": {}}
    for text in given:
        path, equals, value = text.partition("=")
        scope, _, key = path.strip().partition(".")
        if not equals or scope not in found or not key:
            raise InvalidInput(f"`--patch {text}` is not of the form ctx.key=value or workload.key=value.")
        found[scope][key] = value_of(value)
    return found
