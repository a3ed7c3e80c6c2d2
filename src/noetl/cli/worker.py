"""`noetl worker`: does the work of a server elsewhere until it is told to stop; then it finishes what runs and gives back the rest.

Exit code 0 after a stop; 1 where the server does not want it. Tested in tests/cluster/.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.store import call, local_settings

if TYPE_CHECKING:
    from noetl.client.session import Session
    from noetl.settings import WorkerSettings
    from noetl.wire.session import Welcome
    from noetl.worker.loop import Worker


def command(
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
) -> None:
    """Run a worker for a server elsewhere."""

    async def job() -> None:
        from noetl.settings import worker_settings
        from noetl.wiring_remote import remote_worker

        name = f"{os.uname().nodename}:{os.getpid()}"
        given = worker_settings(
            os.environ, name, server=server, token=token, pools=pool or (), tags=tags, capacity=capacity, grace_s=grace
        )
        async with remote_worker(local_settings(None), given) as (worker, session):
            await _work(worker, session, given)

    call(job, fast=True)


async def _work(worker: Worker, session: Session, given: WorkerSettings) -> None:
    """Work until a signal comes or the server does not want this worker."""
    import asyncio

    looking: set[asyncio.Task[None]] = set()

    def stopped(_: object) -> None:
        task = asyncio.create_task(worker.look())  # asks which leases are lost: work may have come back anew
        looking.add(task)
        task.add_done_callback(looking.discard)

    session.stopped, session.drained, session.opened = stopped, worker.drain, _say(given)
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


def _say(given: WorkerSettings) -> Callable[[Welcome, str], None]:
    """Give what tells people, once per server, that the worker is in."""
    told: set[str] = set()

    def opened(welcome: Welcome, url: str) -> None:
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
