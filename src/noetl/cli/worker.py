"""`noetl worker`: does the work of a server elsewhere until it is told to stop; then it finishes what runs and gives back the rest.

Exit code 0 after a stop; 1 where the server does not want it. Tested in tests/cluster/.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.completing import among
from noetl.cli.environment import environment
from noetl.cli.garbage import settle
from noetl.cli.store import AsJson, as_json, call, local_settings
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.client.session import Session
    from noetl.settings import WorkerSettings
    from noetl.wire.session import Welcome
    from noetl.worker.loop import Worker

_ACTION = typer.Argument(
    metavar="[list|drain]",
    help="Instead of running one: list them, or drain one (or, with `--pool`, all of a pool).",
    autocompletion=among("list", "drain"),
)


def command(
    action: Annotated[str | None, _ACTION] = None,
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The worker to drain.")] = None,
    server: Annotated[
        str | None, typer.Option("--server", metavar="URL", help="The server; several, with commas. NOETL_SERVER_URL.")
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Option("--pool", metavar="NAME", help="The pool whose work it takes; may be given often."),
    ] = None,
    tags: Annotated[
        str | None, typer.Option("--tags", metavar="A,B", help="What this worker has, for work that requires it.")
    ] = None,
    capacity: Annotated[
        int | None, typer.Option("--capacity", min=1, help="How many pieces of work it holds at once.")
    ] = None,
    token: Annotated[str | None, typer.Option("--token", help="A token with the role worker. NOETL_TOKEN.")] = None,
    grace: Annotated[
        float,
        typer.Option("--grace", min=0, metavar="SECONDS", help="How long it may finish what runs when it is stopped."),
    ] = 30.0,
    json: AsJson = False,
) -> None:
    """Run a worker for a server elsewhere; list and drain those there are."""

    async def job() -> None:
        if action is not None:
            await _look(action, id, pool or [], server, token, json)
            return
        from noetl.cli.target import server_of
        from noetl.settings import worker_settings
        from noetl.wiring_remote import remote_worker

        target = server_of(server)
        given = worker_settings(
            environment(),
            f"{os.uname().nodename}:{os.getpid()}",
            server=target.url if target else server,
            token=token or (target.token if target else None),
            pools=pool or (),
            tags=tags,
            capacity=capacity,
            grace_s=grace,
        )
        async with remote_worker(local_settings(None), given) as (worker, session):
            await _work(worker, session, given)

    call(job, fast=True)


async def _look(
    action: str, id: str | None, pools: list[str], place: str | None, token: str | None, json: bool
) -> None:
    """List the workers of a server, or drain one, or all of a pool."""
    from noetl.cli.progress import clock
    from noetl.cli.target import connected, the_server

    if action not in ("list", "drain") or (action == "drain" and not id and not pools):
        raise InvalidInput(
            "`noetl worker list` lists workers, `noetl worker drain ID` drains one, `drain --pool NAME` all of a pool."
        )
    target = the_server(place, "`noetl up` runs a server and a worker here.")
    async with connected(target._replace(token=token or target.token)) as client:
        if action == "drain":
            names = {"" if pool == "default" else pool for pool in pools}
            meant = [row.worker_id for row in await client.workers() if row.pool in names] if id is None else [id]
            for name in meant:
                drained = await client.drain(name)
                typer.echo(as_json(drained) if json else f"{drained.worker_id} takes no more work")
            if not meant:
                raise InvalidInput(f"no worker of the pool {', '.join(pools)} is there.")
            return
        for row in await client.workers():
            tags = ",".join(row.tags)
            line = f"{row.worker_id:<24} {row.status:<9} {row.active}/{row.capacity} {row.pool or '-':<12} {tags}"
            typer.echo(as_json(row) if json else f"{line} seen {clock(row.seen_at)}")


async def _work(worker: Worker, session: Session, given: WorkerSettings) -> None:
    """Work until a signal comes or the server does not want this worker."""
    import asyncio

    session.drained, session.opened = worker.drain, _opened(worker, given)
    settle()
    talking = asyncio.create_task(session.run(), name="session")
    working = asyncio.create_task(worker.run(), name="worker")
    draining = asyncio.create_task(_told(worker, session))
    try:
        await asyncio.wait({talking, working, draining}, return_when=asyncio.FIRST_COMPLETED)
        if draining.done() and not talking.done():
            typer.echo(f"noetl: stopping; {worker.busy} under way", err=True)
            await asyncio.wait({talking, working}, timeout=given.grace_s, return_when=asyncio.FIRST_COMPLETED)
            await session.settle()
        if talking.done():
            talking.result()
    finally:
        for task in (draining, working, talking):
            task.cancel()
            await asyncio.wait([task])
    if not working.cancelled():
        working.result()


def _opened(worker: Worker, given: WorkerSettings) -> Callable[[Welcome, str], None]:
    """Give what lets the worker beat as its server wishes, and tells people, once per server, that it is in."""
    told: set[str] = set()

    def opened(welcome: Welcome, url: str) -> None:
        worker.heartbeat_s = welcome.heartbeat_ms / 1000
        if url not in told:
            told.add(url)
            pools = ", ".join(pool or "(default)" for pool in given.pools)
            typer.echo(f"noetl: worker {welcome.worker} at {url}; pool {pools}, capacity {given.capacity}", err=True)

    return opened


async def _told(worker: Worker, session: Session) -> None:
    """Wait for a signal, and take no more work from then on; a second signal ends the process at once."""
    import asyncio
    import signal

    from noetl.wire.session import Drain

    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        if told.is_set():
            os._exit(130)
        told.set()
        worker.drain()
        session.tell(Drain())

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    await told.wait()
