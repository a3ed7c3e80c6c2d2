"""Composition root of a remote worker, which opens no store.

Tested in tests/client/ and tests/cluster/.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from noetl import __version__
from noetl.client.http import Http, Servers
from noetl.client.remote import RemoteBlobs, RemoteControl, RemoteCredentials, RemoteOutbox, RemoteTokens
from noetl.client.session import Session
from noetl.clock import SteadyClock
from noetl.environ import variables
from noetl.observe.exporter import exporting
from noetl.observe.pushing import pushing
from noetl.settings import Settings, WorkerSettings, credential, credential_suffixes
from noetl.wire.session import Hello
from noetl.wiring.embedded import WARM_UP_S, child_processes, confined, worker_resources
from noetl.worker.loop import Worker, current_lease

_RETRY_S = 60.0  # for stored results and credentials while a server is down


@asynccontextmanager
async def remote_worker(settings: Settings, worker_settings: WorkerSettings) -> AsyncIterator[tuple[Worker, Session]]:
    """Open a worker and its session; the caller runs both.

    A worker with a token works for a server that has several users.
    """
    settings = confined(settings, several_users=worker_settings.token is not None)
    http = Http(Servers(worker_settings.servers), worker_settings.token, patience_s=_RETRY_S)
    host = os.uname().nodename

    def hello() -> Hello:
        return Hello(
            worker_settings.name,
            worker_settings.pools,
            worker_settings.tags,
            worker_settings.capacity,
            worker.held,
            host=host,
            version=__version__,
            credentials=credential_suffixes(variables()),
        )

    clock = SteadyClock("the server's clock")
    session = Session(http, hello, clock)
    opened = RemoteCredentials(http, worker_settings.name, current_lease)

    async def resolve(name: str) -> Mapping[str, Any]:
        with suppress(KeyError):
            return credential(variables(), name)
        return await opened(name)

    try:
        control = RemoteControl(session, http, worker_settings.poll_s)
        blobs = RemoteBlobs(http, worker_settings.name, current_lease)
        outbox = RemoteOutbox(http, worker_settings.name, current_lease)
        exchange = RemoteTokens(http, worker_settings.name, current_lease)
        async with (
            child_processes(settings) as children,
            worker_resources(
                settings, control, blobs, resolve, children, session.layer, lambda: outbox, clock, exchange
            ) as shared,
            exporting(shared.counts.text, settings.metrics),
            pushing(shared.counts.text, settings.metrics, worker_settings.name),
        ):
            children.warm_up_soon(WARM_UP_S)
            worker = Worker(
                worker_settings.name, shared, pools=worker_settings.pools, capacity=worker_settings.capacity
            )
            yield worker, session
    finally:
        await http.close()
