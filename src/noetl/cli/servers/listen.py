"""Serve HTTP until a signal. Tested in tests/server/http/test_serve.py."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn

from noetl import __version__
from noetl.cli.runtime.environment import environment
from noetl.cli.runtime.runner import tune_gc
from noetl.cli.runtime.store import local_settings
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput
from noetl.ports import WorkerInfo
from noetl.server.app import app
from noetl.server.services import Services
from noetl.server.workers.presence import attending
from noetl.settings import Settings, server_settings
from noetl.wiring.embedded import serving

if TYPE_CHECKING:
    from noetl.worker.loop import Worker

_GRACE_S = 10  # for requests in flight on shutdown
_MAX_FRAME = 16 * 1024 * 1024
_BACKLOG = 1024


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
            services, embedded = await stack.enter_async_context(serving(settings, server))
            worker = None
            if grace_s is not None:
                worker = await stack.enter_async_context(embedded.run_worker(""))
                info = _worker_info(services, settings)
                stack.enter_context(services.registry.local_worker(info.worker_id, worker))
                await stack.enter_async_context(attending(services.team, services.clock, info, worker))
            config = uvicorn.Config(
                app(services),
                log_config=None,
                access_log=False,
                proxy_headers=False,  # the client address is not used
                lifespan="off",
                http="httptools",
                ws="websockets-sansio",
                ws_max_size=_MAX_FRAME,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
                timeout_keep_alive=75,
            )
            name, number = opened.getsockname()[:2]
            shown = f"[{name}]" if ":" in name else name
            tokens = "requires tokens" if services.gate.required else "requires no tokens"
            echo(f"noetl: http://{shown}:{number} {tokens}; store {_store_name(settings)}", err=True)
            tune_gc()
            await _Server(config, services, worker).serve(sockets=[opened])
            if worker is not None and worker.busy:
                echo(f"noetl: stopping, {worker.busy} tasks running", err=True)
                with suppress(TimeoutError):
                    async with asyncio.timeout(grace_s):
                        await worker.drained.wait()
    return 0


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
