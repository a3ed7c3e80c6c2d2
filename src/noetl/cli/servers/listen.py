"""Serve HTTP until a signal. Tested in tests/server/http/test_serve.py."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn

from noetl import __version__
from noetl.cli.runtime.driver_lock import forget_worker, killed_workers, worker_lock
from noetl.cli.runtime.environment import environment
from noetl.cli.runtime.runner import tune_gc
from noetl.cli.runtime.store import local_settings
from noetl.cli.runtime.terminal import echo
from noetl.client.local_server import offered_token
from noetl.environ import variables
from noetl.model.errors import InvalidInput, NoetlError, log_level
from noetl.ports import Runtime, WorkerInfo
from noetl.server.app import app
from noetl.server.auth.gate import has_own_token
from noetl.server.auth.vault import NEW_KEY
from noetl.server.control_plane import LocalControlPlane
from noetl.server.http.connection import ServerConfig
from noetl.server.services import Services
from noetl.server.workers.presence import attending
from noetl.settings import Settings, credential_suffixes, server_settings
from noetl.wiring.embedded import WARM_UP_S, Embedded, child_processes, serving
from noetl.wiring.watchdog import watched

if TYPE_CHECKING:
    from noetl.worker.loop import Worker

_BACKLOG = 1024
_WATCH_S = 0.5
_log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """Uvicorn server that stops on a signal without exiting the process."""

    def __init__(self, config: uvicorn.Config, services: Services, worker: Worker | None) -> None:
        super().__init__(config)
        self._services = services
        self._worker = worker

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        if self.should_exit:
            self.force_exit = True
        self._services.stopping.set()
        self.should_exit = True
        if self._worker is not None:
            self._worker.drain()


async def listen(
    host: str | None, port: int | None, auth: str | None, store: str | None, *, grace_s: float | None = None
) -> int:
    """Serve until a signal arrives; return the exit code.

    With `grace_s` a worker runs in this process. On a signal it takes no more work and has that time to finish.
    """
    server = server_settings(environment(), host, port, auth)
    settings = local_settings(store)
    with _bound(server.host, server.port) as opened:
        async with AsyncExitStack() as stack:
            name, number = opened.getsockname()[:2]
            own = has_own_token(server.auth, server.host)
            token = stack.enter_context(offered_token(name, number)) if own else ""
            services, embedded = await stack.enter_async_context(serving(settings, server, token))
            worker = None
            if grace_s is not None:
                worker = await stack.enter_async_context(_local_worker(settings, services, embedded))
            config = ServerConfig(app(services), server.http)
            shown = f"http://[{name}]:{number}" if ":" in name else f"http://{name}:{number}"
            tokens = "requires tokens" if services.gate.required else "requires no tokens"
            echo(f"noetl: {shown} {tokens}; store {_store_name(settings)}", err=True)
            if token:
                echo(f"noetl: {shown}/?token={token} opens it in your browser; your commands know the token", err=True)
            if services.vault is None:
                echo(f"noetl: no key encrypts credentials, so none can be stored or used. {NEW_KEY}", err=True)
            tune_gc()
            await stack.enter_async_context(watched())
            await _Server(config, services, worker).serve(sockets=[opened])
            if worker is not None and worker.busy:
                echo(f"noetl: stopping, {worker.busy} tasks running", err=True)
                with suppress(TimeoutError):
                    async with asyncio.timeout(grace_s):
                        await worker.drained.wait()
    return 0


@asynccontextmanager
async def _local_worker(settings: Settings, services: Services, embedded: Embedded) -> AsyncIterator[Worker]:
    """Run the worker of this process; it first gets the work of a killed predecessor."""
    info = _worker_info(services, settings)
    killed = await _take_back(settings, services.team, embedded.control, info.host)
    with worker_lock(settings, info.worker_id):
        async with (
            child_processes(embedded.settings) as children,
            embedded.run_worker("", children) as worker,
            attending(services.team, services.clock, info, worker),
        ):
            children.warm_up_soon(WARM_UP_S)
            watching = asyncio.create_task(_watch(settings, services, embedded.control, info.host, killed))
            with services.registry.local_worker(info.worker_id, worker):
                try:
                    yield worker
                finally:
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)


async def _watch(
    settings: Settings, services: Services, control: LocalControlPlane, host: str, killed: Mapping[str, int]
) -> None:
    """Look for killed workers: a lock may be kept by children, or become free later."""
    while True:
        for worker, count in killed.items():
            _log.info("Worker %s was killed; %d work items that it had return to the queue.", worker, count)
        await services.clock.sleep(_WATCH_S)
        killed = {}
        try:
            killed = await _take_back(settings, services.team, control, host)
        except NoetlError as error:
            _log.log(log_level(error), "The leases of a killed worker are taken back later: %s", error)


async def _take_back(settings: Settings, runtime: Runtime, control: LocalControlPlane, host: str) -> dict[str, int]:
    """Take back the leases of workers that were killed on this machine; count each's."""
    found = {}
    for worker in killed_workers(settings, host):
        found[worker] = await control.take_back(worker)
        await runtime.set_status(worker, "gone")
        forget_worker(settings, worker)
    return found


def _worker_info(services: Services, settings: Settings) -> WorkerInfo:
    """Return the row of the worker in this process; it has the server's ID."""
    now, host = services.clock.now(), os.uname().nodename
    return WorkerInfo(
        services.server_id,
        "",
        capacity=settings.capacity,
        host=host,
        version=__version__,
        registered_at=now,
        seen_at=now,
        credentials=credential_suffixes(variables()),
    )


def _store_name(settings: Settings) -> str:
    """Return the store's path, or its database URL without the password."""
    if not settings.database:
        return str(settings.store)
    parts = urlsplit(settings.database)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """Bind the address first, so that a second server fails at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host.strip("[]"), port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InvalidInput(
            f"Cannot listen on {host}:{port}: {error.strerror or error}. "
            "Use another port with --port N, or any free one with --port 0."
        ) from None
    with opened:
        yield opened
