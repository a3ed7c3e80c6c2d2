"""The composition root of a worker for servers elsewhere: it reaches everything through them and opens no store.

Tested in tests/client/ and tests/cluster/.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from noetl import __version__
from noetl.client.http import Http, Servers
from noetl.client.remote import RemoteBlobs, RemoteControl, RemoteCredentials, RemoteOutbox
from noetl.client.session import Session
from noetl.settings import Settings, WorkerSettings, credential
from noetl.wire.session import Hello
from noetl.wiring import child_processes, equipped
from noetl.worker.loop import Worker, current_lease

_PATIENCE_S = 60.0  # for stored results and credentials while a server is away


@asynccontextmanager
async def remote_worker(settings: Settings, given: WorkerSettings) -> AsyncIterator[tuple[Worker, Session]]:
    """Give a worker and its session; whoever asks runs both."""
    http = Http(Servers(given.servers), given.token, patience_s=_PATIENCE_S)
    host = os.uname().nodename

    def hello() -> Hello:
        return Hello(given.name, given.pools, given.tags, given.capacity, worker.held, host=host, version=__version__)

    session = Session(http, given.token, hello)
    opened = RemoteCredentials(http, given.name, current_lease)

    async def resolve(name: str) -> Mapping[str, Any]:
        with suppress(KeyError):
            return credential(os.environ, name)
        return await opened(name)

    try:
        control, blobs = RemoteControl(session, http, given.poll_s), RemoteBlobs(http, given.name, current_lease)
        outbox = RemoteOutbox(http, given.name, current_lease)
        async with (
            child_processes(settings) as children,
            equipped(settings, control, blobs, resolve, children, session.layer, lambda: outbox) as shared,
        ):
            worker = Worker(given.name, shared, pools=given.pools, capacity=given.capacity)
            yield worker, session
    finally:
        await http.close()
