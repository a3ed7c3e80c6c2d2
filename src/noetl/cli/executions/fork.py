"""`noetl fork`: start a new execution from the middle of an old one.

Work in progress at that point runs again; completed work does not. Tested in tests/acceptance/executions/test_run_fork.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from noetl.cli.arguments.completers import complete_step
from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.store import resolve_id
from noetl.cli.runtime.target import Server, connect, server_of
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput


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
        from noetl.cli.driver.fork import fork_and_drive

        changes = _parse_patch(patch or [])
        server = server_of(store)
        if server is not None:
            return await _fork_remote(server, id, start, changes, playbook, as_json=json)
        return await fork_and_drive(store, id, start, changes, file=playbook, as_json=json)

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
    echo(to_json(made) if as_json else made.execution_id)
    echo(f"execution {made.execution_id} forked from {start} of {source}", err=True)
    return 0


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
