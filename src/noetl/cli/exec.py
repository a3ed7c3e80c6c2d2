"""`noetl exec`: starts an execution on a server, and waits for it or follows it where asked.

Prints the id, or with `--wait` and `--follow` what `noetl run` prints. Exit codes are those of `noetl run`. Tested in
tests/client/test_api.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.completing import playbooks
from noetl.cli.store import AsJson, Place, as_json, call

FOREVER = float("inf")

if TYPE_CHECKING:
    from noetl import Client


def command(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="The playbook's path in the catalog.", autocompletion=playbooks)
    ],
    version: Annotated[int | None, typer.Option("--version", min=1, help="Another version than the latest.")] = None,
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A value of `workload`: JSON or text.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option("--payload", metavar="JSON|@FILE", help="Values of `workload` as a JSON object.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag to find it by; may be given often.")] = None,
    priority: Annotated[int, typer.Option("--priority", help="Work of a higher one is handed out first.")] = 0,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="Started again with this key, it is the same execution.")
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="[=SECONDS]",
            help="Stay until it has ended, and print its result: --wait=SECONDS, or --wait for ever.",
        ),
    ] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Begin a trace, and tell its id.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show progress too.")] = False,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Start an execution on a server."""

    async def job() -> int:
        from noetl.cli.playbooks import payload_of
        from noetl.cli.run import patience
        from noetl.cli.target import connected, the_server

        limit = FOREVER if wait is None else patience(wait)
        target = the_server(server, "`noetl run FILE` runs a playbook here.")
        given, begun = payload_of(set or [], payload), _traceparent() if trace else None
        async with connected(target) as client:
            started = await client.execute(
                path, given, version=version, tags=tag or (), priority=priority, idempotency_key=key, trace=begun
            )
            if wait is None and not follow:
                typer.echo(as_json(started) if json else started.execution_id)
                return 0
            typer.echo(f"execution {started.execution_id} on {target.url}", err=True)
            return await _followed(client, started.execution_id, limit, show=follow and not json, as_json=json)

    raise typer.Exit(call(job))


def _traceparent() -> str:
    """Make the W3C traceparent of a new trace, and tell its id."""
    from secrets import token_hex

    trace_id = token_hex(16)
    typer.echo(f"trace {trace_id}", err=True)
    return f"00-{trace_id}-{token_hex(8)}-01"


async def _followed(client: Client, execution_id: str, limit: float, *, show: bool, as_json: bool) -> int:
    """Follow an execution to its end, or for so many seconds, and tell how it stands; gives the exit code."""
    from asyncio import timeout
    from contextlib import suppress

    from noetl.cli.ending import exit_code, say_ending, say_summary
    from noetl.cli.progress import progress
    from noetl.engine.decision import status_of
    from noetl.engine.evolve import evolve
    from noetl.engine.state import Execution

    state, shown = Execution(execution_id), progress(quiet=not show)
    try:
        with suppress(TimeoutError):
            async with timeout(None if limit == FOREVER else limit):
                async for event in client.follow(execution_id):
                    evolve(state, event)
                    shown.tell(event, state)
    finally:
        shown.close()
    if as_json:
        say_summary(state)
    elif state.phase == "ended":
        say_ending(state)
    else:
        typer.echo(f"{status_of(state)}; `noetl events {execution_id} --follow` goes on looking", err=True)
    return exit_code(state)
