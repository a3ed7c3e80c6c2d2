"""`noetl exec`: starts an execution on a server, or many of them, and waits for it or follows it where asked.

Prints the id, or with `--wait` and `--follow` what `noetl run` prints; of many, each one's. Exit codes are those of
`noetl run`; of many, that of the first that is not completed. Tested in tests/acceptance/test_exec_each.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.common.completers import playbooks
from noetl.cli.common.payload import Order, begun, orders
from noetl.cli.common.store import AsJson, Place, call
from noetl.cli.common.store import as_json as written
from noetl.model.errors import InvalidInput

FOREVER = float("inf")

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.answers import Started


Each = Annotated[
    str | None,
    typer.Option(
        "--each",
        metavar="FILE",
        help="Start one for each order of a file, `-` is standard input: JSON objects, one a line or in an array. "
        "What `--set` and `--payload` say holds for all that do not say otherwise.",
    ),
]


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
    each: Each = None,
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
        from noetl.cli.common.target import connected, the_server
        from noetl.cli.executions.run import patience
        from noetl.cli.playbooks.prepare import payload_of

        stays = patience(wait) if wait is not None else FOREVER if follow else None
        target = the_server(server, "`noetl run FILE` runs a playbook here.")
        given = payload_of(set or [], payload)
        wanted = None if each is None else _orders(each, given, follow=follow)
        asked = {"path": path, "version": version, "tags": tag or (), "priority": priority, "idempotency_key": key}
        asked |= {"trace": _traceparent() if trace else None}
        async with connected(target) as client:
            started = _one(client, given, asked) if wanted is None else begun(client, wanted, asked)
            return await _told(client, started, target.url, stays, show=follow and not json, as_json=json)

    raise typer.Exit(call(job))


def _orders(name: str, for_all: Mapping[str, Any], *, follow: bool) -> list[Order]:
    if follow:
        said = "`--follow` shows one execution; with `--each`, use `--wait`, or `noetl events ID --follow`."
        raise InvalidInput(said)
    return orders(name, for_all)


async def _one(client: Client, payload: Mapping[str, Any], asked: Mapping[str, Any]) -> AsyncIterator[list[Started]]:
    yield [await client.execute(payload=payload, **asked)]


async def _told(
    client: Client,
    started: AsyncIterator[list[Started]],
    url: str,
    stays: float | None,
    *,
    show: bool,
    as_json: bool,
) -> int:
    """Tell of executions as they are started, or stay so many seconds for their ends; gives the exit code."""
    names: list[str] = []
    async for part in started:
        names += [one.execution_id for one in part]
        if stays is None:
            typer.echo("\n".join(written(one) if as_json else one.execution_id for one in part))
    if stays is None:
        return 0
    until, codes = monotonic() + stays, list[int]()
    for name in names:
        typer.echo(f"execution {name} on {url}", err=True)
        codes.append(await _followed(client, name, max(0.0, until - monotonic()), show=show, as_json=as_json))
    return next((code for code in codes if code), 0)


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

    from noetl.cli.output.progress import progress
    from noetl.cli.output.summary import exit_code, say_ending, say_summary
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
