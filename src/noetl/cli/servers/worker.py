"""`noetl worker`: run a worker for a remote server; list and drain workers.

On SIGINT or SIGTERM the worker stops taking work, finishes what runs, and returns the rest. Exit code 0: stopped; 1: the server
refused the worker. Tested in tests/cluster/ and tests/acceptance/test_actions.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.arguments.command_group import CommandGroup, command_group
from noetl.cli.arguments.options import AsJson, Token
from noetl.cli.output.format import format_time, to_json
from noetl.cli.runtime.environment import environment
from noetl.cli.runtime.runner import call, tune_gc
from noetl.cli.runtime.store import local_settings
from noetl.cli.runtime.target import connect, require_server, server_of
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from noetl import Client
    from noetl.client.session import Session
    from noetl.settings import WorkerSettings
    from noetl.wire.session import Welcome
    from noetl.worker.loop import Worker

ServerUrl = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="Server URL; several separated by commas. [env: NOETL_SERVER_URL]"),
]

Grace = Annotated[
    float, typer.Option("--grace", min=0, metavar="SECONDS", help="Time for running tasks to finish on shutdown.")
]


class WorkerGroup(CommandGroup):
    """`noetl worker --server URL` is short for `noetl worker start --server URL`."""

    default = "start"


command = command_group(
    "Run a worker for a remote server; list and drain a server's workers. Without an action, `start` runs.", WorkerGroup
)


@command.command("start")
def start(
    server: ServerUrl = None,
    pool: Annotated[
        list[str] | None, typer.Option("--pool", metavar="NAME", help="Pool to take work from; repeatable.")
    ] = None,
    tags: Annotated[
        str | None, typer.Option("--tags", metavar="A,B", help="Tags of this worker, for work that requires them.")
    ] = None,
    capacity: Annotated[
        int | None,
        typer.Option(
            "--capacity",
            min=1,
            help="Maximum number of tasks at once. [env: NOETL_WORKER_CONCURRENCY, NOETL_CAPACITY] [default: 32]",
        ),
    ] = None,
    token: Token = None,
    grace: Grace = 30.0,
) -> None:
    """Run a worker until it is stopped."""

    async def job() -> None:
        from noetl.settings import worker_settings
        from noetl.wiring.remote_worker import remote_worker

        target = server_of(server)
        settings = worker_settings(
            environment(),
            f"{os.uname().nodename}:{os.getpid()}",
            server=target.url if target else server,
            token=token or (target.token if target else None),
            pools=pool or (),
            tags=tags,
            capacity=capacity,
            grace_s=grace,
        )
        async with remote_worker(local_settings(None), settings) as (worker, session):
            await _work(worker, session, settings)

    call(job, fast=True, service=True)


@command.command("list")
def list_workers(server: ServerUrl = None, token: Token = None, json: AsJson = False) -> None:
    """List the workers of a server: status, load, pool and tags."""

    async def job() -> None:
        async with _connect(server, token) as client:
            for row in await client.workers():
                tags = ",".join(row.tags)
                line = f"{row.worker_id:<24} {row.status:<9} {row.active}/{row.capacity} {row.pool or '-':<12} {tags}"
                echo(to_json(row) if json else f"{line} seen {format_time(row.seen_at)}")

    call(job)


@command.command("drain")
def drain(
    id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Worker ID, as `noetl worker list` prints it.", show_default=False),
    ] = None,
    pool: Annotated[
        list[str] | None, typer.Option("--pool", metavar="NAME", help="Drain every worker of this pool; repeatable.")
    ] = None,
    server: ServerUrl = None,
    token: Token = None,
    json: AsJson = False,
) -> None:
    """Drain workers: they finish what runs and take no more work."""

    async def job() -> None:
        if not id and not pool:
            raise InvalidInput("No worker given. Drain one with `noetl worker drain ID`, or a pool with --pool NAME.")
        pools = {"" if name == "default" else name for name in pool or ()}
        async with _connect(server, token) as client:
            names = [row.worker_id for row in await client.workers() if row.pool in pools] if id is None else [id]
            for name in names:
                drained = await client.drain(name)
                echo(to_json(drained) if json else f"draining {drained.worker_id}")
        if not names:
            raise InvalidInput(f"No worker in the pool {', '.join(pool or ())}. List them with `noetl worker list`.")

    call(job)


def _connect(place: str | None, token: str | None) -> AbstractAsyncContextManager[Client]:
    server = require_server(place, "`noetl up` runs a server and a worker on this machine.")
    return connect(server._replace(token=token or server.token))


async def _work(worker: Worker, session: Session, settings: WorkerSettings) -> None:
    from noetl.wiring.watchdog import watched

    async with watched():
        await _work_watched(worker, session, settings)


async def _work_watched(worker: Worker, session: Session, settings: WorkerSettings) -> None:
    import asyncio

    session.drained, session.opened = worker.drain, _on_opened(worker, settings)
    tune_gc()
    talking = asyncio.create_task(session.run(), name="session")
    working = asyncio.create_task(worker.run(), name="worker")
    draining = asyncio.create_task(_drain_on_signal(worker, session))
    try:
        await asyncio.wait({talking, working, draining}, return_when=asyncio.FIRST_COMPLETED)
        if draining.done() and not talking.done():
            echo(f"noetl: stopping, {worker.busy} tasks running", err=True)
            await asyncio.wait({talking, working}, timeout=settings.grace_s, return_when=asyncio.FIRST_COMPLETED)
        if talking.done():
            talking.result()
    finally:
        for task in (draining, working, talking):
            task.cancel()
            await asyncio.wait([task])
    if not working.cancelled():
        working.result()


def _on_opened(worker: Worker, settings: WorkerSettings) -> Callable[[Welcome, str], None]:
    printed: set[str] = set()

    def opened(welcome: Welcome, url: str) -> None:
        worker.heartbeat_s = welcome.heartbeat_ms / 1000
        if url not in printed:
            printed.add(url)
            pools = ", ".join(pool or "(default)" for pool in settings.pools)
            echo(f"noetl: worker {welcome.worker} at {url}; pool {pools}, capacity {settings.capacity}", err=True)

    return opened


async def _drain_on_signal(worker: Worker, session: Session) -> None:
    """Wait for a signal, then stop taking work; a second signal kills the process."""
    import asyncio
    import signal

    from noetl.wire.session import Drain

    loop, stopping = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        if stopping.is_set():
            os._exit(130)
        stopping.set()
        worker.drain()
        session.tell(Drain())

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    await stopping.wait()
